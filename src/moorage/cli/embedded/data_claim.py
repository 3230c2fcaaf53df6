"""A data directory has one process at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TextIO

from moorage.cli.errors import CommandError


def claim(data: Path) -> TextIO:
    """A directory has one process: two would share a ledger that each believes to be its own."""
    claimed = os.fdopen(os.open(data / "lock", os.O_CREAT | os.O_WRONLY, 0o600), "w")
    os.fchmod(claimed.fileno(), 0o600)
    try:
        fcntl.flock(claimed, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        claimed.close()
        raise CommandError(
            f"another `moorage up` runs on {data}; end it, or choose another --data"
        ) from error
    return claimed
