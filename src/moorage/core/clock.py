"""Time, in one place, so that nothing stores a local time by accident."""

from __future__ import annotations

from datetime import UTC, datetime


def utcnow() -> datetime:
    return datetime.now(UTC)


def from_timestamp(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
