"""The data of an image on its way into a file, in as many pieces as it takes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from typing import BinaryIO

from moorage.drivers.image_store import StoredImage


class Download:
    """What has arrived stays: a transfer that breaks off goes on from there, if the other side can."""

    def __init__(self, image: StoredImage, file: BinaryIO, check: Callable[[], None]) -> None:
        """`check` is called at each chunk."""
        self._image = image
        self._file = file
        self._check = check
        self.restart()

    def restart(self) -> None:
        self._received = 0
        algorithm = self._image.hash_algorithm
        self._hash = hashlib.new(algorithm, usedforsecurity=False) if algorithm else None
        self._file.seek(0)
        self._file.truncate()

    def range_header(self) -> dict[str, str]:
        return {"Range": f"bytes={self._received}-"} if self._received else {}

    def take(self, chunks: Iterable[bytes], *, resumed: bool) -> None:
        if not resumed and self._received:
            self.restart()
        for chunk in chunks:
            self._check()
            self._file.write(chunk)
            self._received += len(chunk)
            if self._hash is not None:
                self._hash.update(chunk)

    def is_short(self) -> bool:
        return self._received < self._image.size

    def is_whole(self) -> bool:
        if self._image.size and self._received != self._image.size:
            return False
        return self._hash is None or self._hash.hexdigest() == self._image.hash_value

    def finish(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
