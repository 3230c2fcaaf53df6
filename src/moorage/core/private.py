"""Files and directories for our eyes only: databases and journals hold what users entrust to their servers.

What an older release left wider is tightened, if it is ours. A directory that is there already is only
touched if nothing but our own things are in it: somebody may have pointed at one that others use too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

_OTHERS = 0o077
_JOURNALS = ("-wal", "-shm", "-journal")
"""What SQLite puts beside a database, with the mode of the database."""


def directory(path: Path, ours: Collection[str] | None = None) -> None:
    """Make it, or tighten it; `ours` are the names of what we put there, None if nobody else does."""
    try:
        path.mkdir(mode=0o700, parents=True)
        path.chmod(0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
    if ours is None or all(_is_ours(name, ours) for name in _names(path)):
        tighten(path)


def database(path: Path) -> None:
    """An SQLite database that is about to be opened.

    One that is there is not opened here: closing it again would drop the locks that this process has on it.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        path.chmod(0o600)
    except FileExistsError:
        for each in (path, *(path.with_name(path.name + journal) for journal in _JOURNALS)):
            tighten(each)
    except OSError:
        return  # who opens it says what is wrong
    if all(_is_ours(name, (path.name,)) for name in _names(path.parent)):
        tighten(path.parent)


def require(*paths: Path) -> None:
    """Raises PermissionError for what is there and not ours to write, as an earlier account's."""
    for path in paths:
        with suppress(FileNotFoundError):
            owner = path.stat().st_uid
            if not os.access(path, os.W_OK):
                raise PermissionError(f"{path} belongs to user {owner}, and this is user {os.geteuid()}")


def _is_ours(name: str, ours: Collection[str]) -> bool:
    return any(name == one or name.startswith((f"{one}-", f"{one}.")) for one in ours)


def _names(path: Path) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return [""]  # nobody's


def tighten(path: Path) -> None:
    """Nobody else gets at it from now on; nothing happens if it is not there, or not ours."""
    with suppress(OSError):
        found = path.stat()
        if found.st_uid == os.geteuid() and found.st_mode & _OTHERS:
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
