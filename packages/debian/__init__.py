"""Packages of Debian: `python -m packages.debian dist`."""
