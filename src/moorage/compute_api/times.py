"""Moments, in the spellings that the Compute API has for them."""

from __future__ import annotations

from datetime import UTC, datetime


def plain(moment: datetime | None) -> str | None:
    """With microseconds and without a zone: services, actions, what administrators see."""
    if moment is None:
        return None
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def zulu(moment: datetime | None) -> str | None:
    """To the second, with a Z: what users see of servers."""
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
