"""A real Nova on loopback, with a fake hypervisor."""
