"""A server on its machine: deployed, operated, removed, step by step; what is written down there."""
