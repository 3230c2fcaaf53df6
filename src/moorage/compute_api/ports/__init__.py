"""Networks of a new server, ports of one that is there, events from the network service."""
