"""Random texts that nobody can guess."""

from __future__ import annotations

import secrets

_SPARE_BITS = 64
"""More than are needed, so that no letter is noticeably more likely than another."""


def draw(alphabet: str, length: int) -> str:
    """In one draw: each is a call into the system, for which a thread gives way to all others."""
    number = secrets.randbits(8 * length + _SPARE_BITS)
    drawn = []
    for _ in range(length):
        number, index = divmod(number, len(alphabet))
        drawn.append(alphabet[index])
    return "".join(drawn)
