"""Tempest, OpenStack's own tests of a cloud."""
