"""Booting servers on simulated nodes: how many a second, and how soon each one runs."""
