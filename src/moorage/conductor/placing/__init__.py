"""Hosts for servers with their claims made; what may object to a host that was chosen."""
