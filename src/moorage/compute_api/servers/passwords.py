"""Passwords for new servers, as the API answers them."""

from __future__ import annotations

import string

from moorage.core import random_text

_LETTERS = string.ascii_letters + string.digits
_LENGTH = 12


def password() -> str:
    return random_text.draw(_LETTERS, _LENGTH)
