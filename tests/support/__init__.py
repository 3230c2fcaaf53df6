"""Helpers that tests and benchmarks share; nothing here imports pytest."""
