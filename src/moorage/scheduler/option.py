"""An option: one host that is left for a server, with the way in which it would serve it."""

from __future__ import annotations

from typing import NamedTuple

from moorage.placement.client.contract import AllocationRequest
from moorage.scheduler.hosts import HostState
from moorage.scheduler.offers import Offer


class HostOption(NamedTuple):
    host: HostState
    offer: Offer
    way: AllocationRequest

    def free(self, class_name: str) -> int:
        """What is free now, after the earlier decisions of the pass."""
        return self.offer.free.get(class_name, 0) - self.host.taken.get(class_name, 0)
