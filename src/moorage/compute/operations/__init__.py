"""The ledger as operators see it: what is under way, what is stuck and why, and what they may do about it."""
