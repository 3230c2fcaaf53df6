"""A real Neutron and a real Glance on loopback."""
