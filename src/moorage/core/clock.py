"""Time, in one place, so that nothing stores a local time by accident."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utcnow() -> datetime:
    return datetime.now(UTC)


def from_timestamp(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def uptime() -> float:
    """Seconds that grow while the process is stopped and while the machine sleeps, too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
