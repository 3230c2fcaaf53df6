"""Host aggregates, the zones they make, and their mirror in Placement."""
