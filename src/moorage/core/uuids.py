"""UUIDs in the spellings that OpenStack services take."""

from __future__ import annotations

import uuid


def normal(value: str) -> str:
    """The spelling with dashes and small letters, in which everything is stored."""
    return str(uuid.UUID(value))


def generate() -> str:
    return str(uuid.uuid4())
