"""Files of keys: the master keys that conductors and APIs have, or the keys of one host.

A line is an id and a key. Messages are sealed with every key of the file, and those sealed with any of them
are believed: so keys are rotated by adding one everywhere, and removing the other one afterwards. A file that
changed is read again at once, without a signal; one that makes no sense changes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from moorage.core.config import ConfigError

LOG = logging.getLogger(__name__)
Keys = Mapping[str, bytes]
"""By id, the newest first."""

KEY_BYTES = 32
_LINE = re.compile(r"([A-Za-z0-9._-]{1,64})\s+([0-9a-f]{64})")
_OTHERS = 0o007
_LOOK_SECONDS = 1.0
_PURPOSE = b"moorage host "


def new_key() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


def host_keys(master_keys: Keys, host: str) -> dict[str, bytes]:
    """What the agent of a host gets: nobody can compute another host's from it, or what it came from."""
    return {
        key_id: hmac.digest(key, _PURPOSE + host.encode(), hashlib.sha256)
        for key_id, key in master_keys.items()
    }


def text(keys: Keys) -> str:
    return "".join(f"{key_id} {key.hex()}\n" for key_id, key in keys.items())


def parse(content: str, name: str) -> dict[str, bytes]:
    """ConfigError, without the line's text, if something is no key."""
    found: dict[str, bytes] = {}
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None or match[1] in found:
            raise ConfigError(f"{name}, line {number}: not a new id and 64 hexadecimal digits")
        found[match[1]] = bytes.fromhex(match[2])
    if not found:
        raise ConfigError(f"{name} has no key in it")
    return found


def read(path: Path) -> dict[str, bytes]:
    """ConfigError if it can't be read, makes no sense, or everybody can read it."""
    try:
        if stat.S_IMODE(path.stat().st_mode) & _OTHERS:
            raise ConfigError(f"{path} can be read by everybody: `chmod o= {path}`")
        content = path.read_text()
    except OSError as error:
        raise ConfigError(f"can't read {path}: {error}") from error
    return parse(content, str(path))


class KeyFile:
    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._seen = self._mark()
        self._keys: Keys = read(path)
        self._looked = clock()

    def keys(self) -> Keys:
        """As the file has them, or had them a second ago."""
        with self._lock:
            if self._clock() - self._looked >= _LOOK_SECONDS:
                self._looked = self._clock()
                self._look()
            return self._keys

    def _look(self) -> None:
        mark = self._mark()
        if mark == self._seen:
            return
        self._seen = mark
        try:
            self._keys = read(self._path)
        except ConfigError as error:
            LOG.error("the keys stay as they were: %s", error)
        else:
            LOG.info("the keys are now those that %s has: %s", self._path, ", ".join(self._keys))

    def _mark(self) -> tuple[int, int, int, int]:
        """Differs after every change, that of its owner included: so one may put it there, and then see to
        that."""
        try:
            found = self._path.stat()
        except OSError:
            return (0, 0, 0, 0)
        return (found.st_ino, found.st_mtime_ns, found.st_size, found.st_ctime_ns)
