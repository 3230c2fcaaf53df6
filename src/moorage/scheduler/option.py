"""An option: one host that is left for a server, with the way in which it would serve it."""

from __future__ import annotations

from typing import NamedTuple

from moorage.placement.client.contract import AllocationRequest
from moorage.scheduler.hosts import HostState
from moorage.scheduler.offers import Offer


class Option(NamedTuple):
    host: HostState
    offer: Offer
    way: AllocationRequest

    def free(self, *classes: str) -> int:
        """What is free now, after the earlier decisions of the pass."""
        free, taken = self.offer.free, self.host.taken
        if not taken:
            return sum([free.get(name, 0) for name in classes])
        return sum([free.get(name, 0) - taken.get(name, 0) for name in classes])
