"""Machines that nobody chooses before the host is chosen: a host offers a pool, and reserves from it."""
