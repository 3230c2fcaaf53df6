"""The official command line client."""
