"""Flavors, and what their extra specs mean."""
