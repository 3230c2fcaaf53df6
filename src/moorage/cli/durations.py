"""How long something lasts, as people write it."""

from __future__ import annotations

import re

from moorage.cli.errors import CommandError

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: str, what: str) -> int:
    """Of 90s, 30m, 2h or 1d; a number alone is seconds."""
    parts = re.fullmatch(r"([1-9][0-9]{0,8})([smhd]?)", text.strip())
    if parts is None:
        raise CommandError(f"{what} is a number and s, m, h or d, as in 90m, not {text!r}")
    return int(parts[1]) * _UNITS[parts[2]]
