"""Audits: all that exists twice, held against each other, and mended if it is asked for."""
