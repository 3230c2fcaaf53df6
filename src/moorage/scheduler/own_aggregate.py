"""Own aggregate: the placement aggregate that all nodes of one host are in, if it may have many of them.

A question for that host is then one question, however many nodes it has. Nobody keeps a list of these
aggregates: the UUID follows from the host's name, and says by its first digits what it is (RFC 9562 leaves
version 8 to whoever makes it).
"""

from __future__ import annotations

import hashlib
import uuid
from functools import lru_cache

_MARK = b"moorag"
_VERSION = 8
_PREFIX = str(uuid.UUID(bytes=_MARK + bytes(10)))[:14]


@lru_cache(maxsize=4096)
def of_host(host: str) -> str:
    digest = hashlib.sha256(host.encode()).digest()[:10]
    number = int.from_bytes(_MARK + digest) & ~(0xF << 76) & ~(0x3 << 62)
    return str(uuid.UUID(int=number | (_VERSION << 76) | (0x2 << 62)))


def is_own(aggregate_uuid: str) -> bool:
    return aggregate_uuid.startswith(f"{_PREFIX}{_VERSION}")


def is_asked_for(condition: str) -> bool:
    """Whether a value of `member_of` is about the nodes of one certain host."""
    return is_own(condition.removeprefix("in:"))
