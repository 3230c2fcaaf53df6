"""What moves servers from host to host; `moving.py` is what all of these have in common."""
