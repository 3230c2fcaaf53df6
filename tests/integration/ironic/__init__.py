"""Bare metal with a real Ironic."""
