"""Several hosts with a libvirt each, on one machine: `hosts.py` starts them."""
