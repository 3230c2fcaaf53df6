"""One check a file: what it compares, how it looks, and how it mends. `register.py` lists them all."""
