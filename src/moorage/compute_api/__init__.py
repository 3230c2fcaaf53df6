"""The Compute API: its table of routes, and one handler file a resource, by family."""
