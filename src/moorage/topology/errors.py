"""What is wrong with what a flavor or an image asks for; each is a sentence for people."""

from __future__ import annotations


class BadTopologyError(Exception):
    """`key` is an extra spec of the flavor, or a property of the image."""

    def __init__(self, key: str, problem: str) -> None:
        kind = "flavor's extra spec" if ":" in key else "image's property"
        super().__init__(f"The {kind} '{key}' {problem}.")
        self.key = key
