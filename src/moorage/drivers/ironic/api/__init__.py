"""Ironic's API: what it says of a node, and the calls that change one."""
