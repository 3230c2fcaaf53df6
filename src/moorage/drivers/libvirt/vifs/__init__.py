"""Virtual interfaces: how the ports of servers become devices on this host.

`contract.py` says what the driver asks for. `os_vif.py` does it where Neutron has bound the port; for
networks of the built-in pool `bridge.py` does, with a bridge, rules, leases and tunnels of its own.
"""
