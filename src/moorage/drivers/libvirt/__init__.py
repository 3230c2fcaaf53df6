"""Virtual machines of this host's own libvirt."""
