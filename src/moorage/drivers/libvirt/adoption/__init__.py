"""Guests that another system has defined on this host, and that become ours as they run."""
