"""Hosts and their nodes: services, hypervisors, heartbeats, builds that failed."""
