"""What a driver finds out about its machine before an agent runs there: `moorage doctor` shows it."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class CheckOutcome(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """Servers run without it, but something that operators expect does not."""
    FAILED = "failed"
    """No server would run."""


class HostCheck(msgspec.Struct, frozen=True):
    name: str
    outcome: CheckOutcome
    found: str
    advice: str = ""
    """What to do about it, as a command where there is one."""
