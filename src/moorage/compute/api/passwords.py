"""Passwords for new servers, as the API answers them."""

from __future__ import annotations

import secrets
import string

_LETTERS = string.ascii_letters + string.digits
_LENGTH = 12


def password() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
