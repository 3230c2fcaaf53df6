"""A real Ironic on loopback."""
