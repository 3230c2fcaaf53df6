"""Telling how far a take-over is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    def __call__(self, what: str, done: int, total: int) -> None:
        """So many of the things that `what` names are done."""


def unseen(what: str, done: int, total: int) -> None:
    """For those who don't look."""
