"""Real guests, through Moorage and with `virsh` alone, by turns on one libvirt host.

`alone` does without a control plane what a boot and a move are; `measures` takes the figures of both sides.
"""
