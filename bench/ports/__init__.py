"""Neutron calls of a boot, and the time of both phases."""
