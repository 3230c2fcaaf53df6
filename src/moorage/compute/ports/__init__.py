"""Ports of servers: attaching and detaching, and what the network service tells of them."""
