"""What a handler answers, before it is put on the wire."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder()


@dataclass(slots=True)
class Reply:
    status: int = 200
    body: Any = None
    """Anything that msgspec encodes, or bytes that are JSON already; None sends no body and no type."""
    last_modified: datetime | None = None
    """Sent, with `cache-control: no-cache`, where the microversion has it."""
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    stream: Iterable[bytes] | None = None
    """Sent instead of a body, as it comes."""
    length: int = 0
    """Of the stream."""

    def encoded(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else _ENCODER.encode(self.body)


NO_CONTENT = 204


def no_content() -> Reply:
    return Reply(NO_CONTENT)


def empty(status: int) -> Reply:
    """Nothing, but of a type: some clients look at the type of every answer that is not a 204."""
    return no_content() if status == NO_CONTENT else Reply(status, b"")
