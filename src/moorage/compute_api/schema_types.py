"""The kinds of values that bodies and query strings of the Compute API are made of."""

from __future__ import annotations

from typing import Any

from moorage.core.numbers import MOST_DIGITS

Json = dict[str, Any]

_YES = [True, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes"]
_NO = [False, "False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no"]

MAX_INT = 0x7FFFFFFF
_LENGTH: Json = {"minLength": 1, "maxLength": MOST_DIGITS}
"""Of a number that is written as text."""
STRING: Json = {"type": "string"}
BOOLEAN: Json = {"type": ["boolean", "string"], "enum": [*_YES, *_NO]}
NON_NEGATIVE: Json = {"type": ["integer", "string"], "pattern": "^[0-9]+$", "minimum": 0, **_LENGTH}
POSITIVE: Json = {
    "type": ["integer", "string"],
    "pattern": "^0*[1-9][0-9]*$",
    "minimum": 1,
    **_LENGTH,
}
NAME: Json = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": r"^(?!\s)[^\x00-\x1f\x7f]+(?<!\s)$",
}
DESCRIPTION: Json = {"type": ["string", "null"], "maxLength": 255, "pattern": r"^[^\x00-\x1f\x7f]*$"}
HOST: Json = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[a-zA-Z0-9\-_.]*$"}
SHORT_TEXT: Json = {"type": "string", "minLength": 1, "maxLength": 255}
SPEC_KEY = "^[a-zA-Z0-9-_:. ]{1,255}$"

LIMIT: Json = {"type": "string", "pattern": "^[0-9]+$", **_LENGTH}
PAGE: Json = {"limit": LIMIT, "marker": STRING}


def as_boolean(value: object) -> bool:
    """What a value that passed `BOOLEAN` means."""
    return value in _YES


def closed(properties: Json, required: tuple[str, ...] = (), **more: Any) -> Json:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


def once(properties: Json) -> Json:
    """A query string with these parameters, none of them repeated, and no others."""
    return closed(properties, single=list(properties))


def wrapped(name: str, content: Json) -> Json:
    """A body with one key, as most of this API's have."""
    return closed({name: content}, (name,))


def tolerant(properties: Json) -> Json:
    """A query string in which unknown parameters are ignored."""
    return {"type": "object", "properties": properties, "additionalProperties": True}
