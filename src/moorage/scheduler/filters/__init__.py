"""Filters: conditions that Placement can't check. Each says what it has against a host, or nothing."""
