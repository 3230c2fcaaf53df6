"""The data of the built-in catalogue's images: one file each, in one directory.

A file is written under another name, and gets its own when all of it is on the disk; a row names it after
that, and never another one. So a file that no row names is of an upload that is under way, or that nobody
needs: the latter are swept.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from moorage.core import private

_PART = ".part"
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OURS = re.compile(rf"{_UUID}\.{_UUID}(?:\.part)?")


def name_of(image_id: str, upload: str) -> str:
    """Each upload has its own: one that was given up on can't spoil what came after it."""
    return f"{image_id}.{upload}"


class ImageFiles:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def prepare(self) -> None:
        """Raises OSError if it can't be used."""
        private.directory(self.directory)

    def path(self, name: str) -> Path:
        return self.directory / name

    def write(self, name: str) -> BinaryIO:
        """An unfinished one."""
        self.prepare()
        return os.fdopen(os.open(self._part(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")

    def finish(self, name: str, file: BinaryIO) -> None:
        """What was written is on the disk, under its name."""
        file.flush()
        os.fsync(file.fileno())
        self._part(name).replace(self.path(name))
        directory = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def remove(self, name: str) -> None:
        """Finished or not; who reads it now reads on."""
        for path in (self._part(name), self.path(name)):
            path.unlink(missing_ok=True)

    def idle(self, seconds: float) -> list[str]:
        """Names of files that nobody has written to for so long; what is not of our making is left out."""
        old = time.time() - seconds
        found: list[str] = []
        for entry in _entries(self.directory):
            with suppress(FileNotFoundError):
                if _OURS.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < old:
                    found.append(entry.name.removesuffix(_PART))
        return found

    def _part(self, name: str) -> Path:
        return self.path(name + _PART)


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
