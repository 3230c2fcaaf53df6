"""A driver that only pretends: a host of any size that costs nothing, and that fails when it is told to."""
