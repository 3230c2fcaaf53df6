"""A real Keystone on loopback."""
