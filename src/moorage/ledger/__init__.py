"""Durable operations: recorded, leased, checkpointed and fenced. Knows no kind of operation."""
