"""A real Horizon on loopback."""
