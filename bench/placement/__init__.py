"""The Placement benchmark: `python -m bench.placement --help`."""
