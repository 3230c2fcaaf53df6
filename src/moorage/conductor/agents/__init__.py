"""Agents: asking them, and what they say of themselves and of their servers."""
