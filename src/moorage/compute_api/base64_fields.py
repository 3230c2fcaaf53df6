"""Fields that hold base64, which no JSON schema checks by itself."""

from __future__ import annotations

import base64
import binascii

from moorage.compute.errors import ComputeError


def check(field: str, text: str | None) -> None:
    """Refuse what can't be decoded; white space is fine, as is nothing at all."""
    if text is None:
        return
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        detail = f"Invalid input for field/attribute {field}. Value: {text}. '{text}' is not a 'base64'"
        raise ComputeError(detail) from error
