"""The board: what the decisions of one pass have taken so far, so that each next one sees it.

Placement learns of a pass when its claims are made, all at once; the board bridges the time until then. It
starts with the host states and candidates of the beginning of the pass, and is dropped at its end.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from moorage.placement.client.contract import AllocationRequest
from moorage.scheduler.hosts import HostState
from moorage.scheduler.offers import Offer
from moorage.scheduler.request import Request

if TYPE_CHECKING:
    from moorage.scheduler.ranking import Ranking

Amounts = Mapping[str, Mapping[str, int]]


class Board:
    def __init__(self, hosts: Mapping[str, HostState]) -> None:
        self.hosts = dict(hosts)
        """By the node's UUID."""
        self.changed: list[str] = []
        """Nodes in the order in which something was taken there or given back."""
        self.rankings: dict[tuple[int, Hashable], Ranking] = {}
        """What the selector has worked out so far, by answer and kind of request."""
        self._taken: dict[tuple[str, str], int] = {}

    def learn(self, hosts: Mapping[str, HostState]) -> None:
        """Add what a wider answer brought; nodes that are known keep what the pass has counted."""
        self.hosts = {**hosts, **self.hosts}

    def take(self, request: Request, node_uuid: str, amounts: Amounts) -> None:
        """Count a server as placed; `amounts` by resource class, by provider."""
        self._count(request, node_uuid, amounts, 1)

    def give_back(self, request: Request, node_uuid: str, amounts: Amounts) -> None:
        """Undo `take`: the claim was refused."""
        self._count(request, node_uuid, amounts, -1)

    def first_fit(self, host: HostState, offer: Offer) -> AllocationRequest | None:
        """The first way of an offer for which there is still room."""
        if not host.taken and not offer.shares:
            return offer.ways[0]
        return next((way for way in offer.ways if self._fits(offer, way)), None)

    def _fits(self, offer: Offer, way: AllocationRequest) -> bool:
        for uuid, held in way.allocations.items():
            for name, amount in held["resources"].items():
                taken = self._taken.get((uuid, name))
                if taken and offer.room.get((uuid, name), 0) - taken < amount:
                    return False
        return True

    def _count(self, request: Request, node_uuid: str, amounts: Amounts, sign: int) -> None:
        host = self.hosts[node_uuid]
        self.changed.append(node_uuid)
        host.servers += sign
        for uuid, resources in amounts.items():
            for name, amount in resources.items():
                key = (uuid, name)
                self._taken[key] = self._taken.get(key, 0) + sign * amount
                host.taken[name] = host.taken.get(name, 0) + sign * amount
        if request.server_group is not None:
            members = request.server_group.members
            members[node_uuid] = members.get(node_uuid, 0) + sign
