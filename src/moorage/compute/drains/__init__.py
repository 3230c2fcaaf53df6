"""Drains: hosts that are being emptied, server by server."""
