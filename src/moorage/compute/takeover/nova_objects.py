"""What Nova keeps as text: its own objects, and plain JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.takeover.errors import TakeoverError

Json = dict[str, Any]

_DATA = "nova_object.data"


def plain(text: str | None, where: str) -> Any:
    """None for nothing; `where` is what the operator is told if it can't be read."""
    if not text:
        return None
    try:
        return _without_names(msgspec.json.decode(text))
    except msgspec.DecodeError as error:
        raise TakeoverError(f"{where} holds something that is no JSON: {error}") from error


def _without_names(value: Any) -> Any:
    """An object is what its fields are."""
    if isinstance(value, dict):
        if _DATA in value:
            return _without_names(value[_DATA])
        return {key: _without_names(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_names(one) for one in value]
    return value
