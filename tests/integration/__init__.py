"""Moorage with real neighbours: the services and clients of an OpenStack cloud."""
