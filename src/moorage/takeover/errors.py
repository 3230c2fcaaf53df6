"""Why a take-over can't be made."""

from __future__ import annotations


class TakeoverError(Exception):
    """Nothing was written; the text is meant for the operator."""
