"""The one character that JSON and URLs carry and PostgreSQL can't store: refused wherever it comes from."""

from __future__ import annotations

from typing import Any

NUL = "\0"
REFUSAL = "A NUL character can't be stored."


def in_json(body: bytes, data: Any) -> bool:
    """Whether `data`, decoded from `body`, has one; a body without the escape is not searched."""
    return b"\\u0000" in body and _found(data)


def _found(data: Any) -> bool:
    if isinstance(data, str):
        return NUL in data
    if isinstance(data, dict):
        return any(_found(key) or _found(value) for key, value in data.items())
    return isinstance(data, list) and any(_found(item) for item in data)
