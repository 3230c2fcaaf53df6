"""Runs operations: the runner, the work in its hands, and who hears of it."""
