"""What a host is, and where on it a guest is put.

From libvirt's documents to structs (`machine.py`, `guest_hardware.py`, `pci_devices.py`), from these to what
Placement is told (`inventory.py`, the traits), and from what Placement gave a server to the processors, pages
and devices that its guest gets (`pinning.py`, `topology.py`). All but `inventory.py` is pure.
"""
