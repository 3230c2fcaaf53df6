"""UUIDs in the spellings that OpenStack services take."""

from __future__ import annotations

import uuid


def is_uuid_like(value: object) -> bool:
    """A UUID in any of the spellings that Python takes, with dashes or without."""
    if not isinstance(value, str):
        return False
    try:
        parsed = uuid.UUID(value)
    except ValueError:
        return False
    bare = value.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "").lower()
    return parsed.hex == bare


def normal(value: str) -> str:
    """The spelling with dashes and small letters, in which everything is stored."""
    return str(uuid.UUID(value))


def generate() -> str:
    return str(uuid.uuid4())
