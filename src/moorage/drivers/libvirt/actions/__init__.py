"""What can be done with a server, a kind in each file. It works on a `Backend`, and may be asked twice.

`describing.py` makes a guest's description of what is remembered of its server; `starting.py` gives that to
libvirt, and starts it.
"""
