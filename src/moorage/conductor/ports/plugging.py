"""Plugging: how long new servers wait for their ports to come up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from moorage.core.clock import utcnow


@dataclass(frozen=True)
class PluggingTimeout:
    seconds: int = 0
    """0: nobody waits."""
    fatal: bool = True
    """Whether a host on which they do not come up is left."""

    def over(self, since: datetime) -> bool:
        return utcnow() - since >= timedelta(seconds=self.seconds)
