"""Tests that crash, race and restart the real service, and then count."""
