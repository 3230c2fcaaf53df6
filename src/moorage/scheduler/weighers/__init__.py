"""Weighers: which of the hosts that are left is best. Each has an opinion; their weighted sum decides."""
