"""Hosts and their nodes: services, hypervisors, signs of life, builds that failed."""
