"""What libvirtd writes down about guests that run, and where a libvirtd that was killed has spoilt it.

When the copy of a disk ends, libvirtd writes in between what it can't use afterwards:

- a copy of no kind, which it refuses to read, and with it all that it knew of the guest (7.0 to 10.0; mended
  in 11.3): the guest runs, and libvirt takes it for off;
- a copy whose job QEMU has forgotten already: the next libvirtd drops the job and keeps the copy, for ever,
  and lets nobody copy the disk again, or move the guest.

Either copy is cut out. That may only be done while there is no libvirtd that may write the file: in the
moment between two of them, or, if the one that is there can't have read it, also later.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import struct
import time
from pathlib import Path

from moorage.drivers.libvirt.domain import mark

LOG = logging.getLogger(__name__)

_COPY = re.compile(r"<mirror\b[^>]*>.*?</mirror>\s*", re.DOTALL)
_COPY_OF_NO_KIND = re.compile(r"<mirror\b[^>]*\bjob=''[^>]*>.*?</mirror>\s*", re.DOTALL)
_JOB = re.compile(r"<blockjob\b")
_LOCK = "hhqqi4x"
"""The kernel's `struct flock`, on machines of 64 bits."""
LAST_WORDS = 2.0
"""Seconds in which a libvirtd that has hung up ends."""
_LOOKS = 0.02


class StatusFiles:
    def __init__(self, path: Path, node_uuid: str) -> None:
        """`path` is the directory; if it is not seen here, there is nothing to mend."""
        self._path = path
        self._node_uuid = node_uuid

    def mend(self, patience: float = 0.0) -> None:
        """For the next libvirtd; `patience` is for how long the last one may still be there.

        Late: refused by what is looked at right before, that none has the file.
        """
        deadline = time.monotonic() + patience
        try:
            for path in self._path.glob("*.xml"):
                while self._is_spoilt(path) and self._is_in_use(path) and time.monotonic() < deadline:
                    time.sleep(_LOOKS)
                if self._is_spoilt(path) and not self._is_in_use(path):
                    self._rewrite(path, _mended(path.read_text()))
        except OSError as error:
            LOG.debug("what libvirtd has written down is not seen here: %s", error)

    def forget(self, name: str) -> None:
        """Of a guest that has ended without libvirtd."""
        for left in (f"{name}.xml", f"{name}.pid"):
            (self._path / left).unlink(missing_ok=True)

    def daemon(self) -> int | None:
        """The process of libvirtd, which holds a lock for as long as it lives."""
        try:
            with (self._path / "driver.pid").open("rb") as file:
                asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                kind, _, _, _, pid = struct.unpack(_LOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
        except OSError:
            return None
        return None if kind == fcntl.F_UNLCK else pid

    def _is_spoilt(self, path: Path) -> bool:
        text = path.read_text()
        return mark.NAMESPACE in text and self._node_uuid in text and _mended(text) != text

    def _rewrite(self, path: Path, text: str) -> None:
        made = path.with_suffix(".moorage-mended")  # libvirtd reads only what ends in `.xml`
        made.touch(mode=0o600)
        made.write_text(text)
        os.replace(made, path)
        LOG.warning("%s told of a copy that is over, and is mended", path)

    def _is_in_use(self, path: Path) -> bool:
        """There is a libvirtd, and it has written or read the file."""
        if self.daemon() is None:
            return False
        since = (self._path / "driver.pid").stat().st_mtime_ns
        return path.stat().st_mtime_ns >= since or not _COPY_OF_NO_KIND.search(path.read_text())


def _mended(text: str) -> str:
    """The same, if there is nothing to mend."""
    return (_COPY_OF_NO_KIND if _JOB.search(text) else _COPY).sub("", text)
