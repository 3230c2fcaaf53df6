"""Plugging: how new servers wait for their ports to come up, and for how long.

Where the driver can do it, a server holds still meanwhile: else its first question for an address may go
nowhere, and many guests ask again only after a long while.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from moorage.conductor.engine.work import Work
from moorage.conductor.placing.placed import Placing
from moorage.conductor.ports import server_ports
from moorage.core.clock import utcnow
from moorage.network.contract import Network, NetworkAccess

PLUG_LOOK_SECONDS = 2.0


@dataclass(frozen=True)
class PluggingTimeout:
    seconds: int = 0
    """0: nobody waits."""
    fatal: bool = True
    """Whether a host on which they do not come up is left."""

    def over(self, since: datetime) -> bool:
        return utcnow() - since >= timedelta(seconds=self.seconds)


def awaited(work: Work[Placing]) -> bool:
    """Whether there is anything to wait for. What a driver has bound, it has plugged."""
    return bool(server_ports.of(work)) and not work.state.place.binds_ports


def holds_still(work: Work[Placing], network: Network, timeout: PluggingTimeout) -> bool:
    """Whether the server shall start paused: if its node can do that, and if we see its ports come up."""
    sees = network.reach is NetworkAccess.ANYONE and timeout.seconds > 0
    return sees and work.state.place.starts_paused and awaited(work)
