"""Kills at each step of each kind of operation, one after the other: where, of whom, and what then."""
