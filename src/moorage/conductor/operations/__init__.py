"""The kinds of operations, one a file."""
