"""What a port needs of a host that its server is on already: more of the server's claim, or less.

A change is decided on, written down, and made true after that. So whoever comes after a crash can tell
whether it has been made, and no port is paid for twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.compute.servers.server import Server
from moorage.conductor.engine.work import Work
from moorage.deciding import port_needs
from moorage.network.contract import PortRecord
from moorage.placement.client.contract import ConsumerClaim, PlacementClient
from moorage.scheduler.request import Request

Allocations = dict[str, dict[str, int]]
PLAN_AGAIN_SECONDS = 0.5
_MOST_PLANS = 5


class ClaimChange(msgspec.Struct, frozen=True):
    """Of what a server holds in Placement."""

    before: Allocations
    after: Allocations
    providers: dict[str, list[str]] = {}
    """By the suffix of a request group: who serves it."""

    def undone(self) -> ClaimChange:
        return ClaimChange(self.after, self.before)


class PortClaims:
    def __init__(self, placement: PlacementClient) -> None:
        self._placement = placement

    def more(self, server: Server, port: PortRecord) -> ClaimChange | None:
        """With what the port needs of the server's node; None if it hasn't got that."""
        request = port_needs.added(Request(server_uuid=server.uuid, groups=()), port.needs)
        here = request.narrowed(lambda group: group.within(server.on_node))
        offers = self._placement.candidates(here.queries(1)[0]).allocation_requests
        if not offers:
            return None
        held, _ = self._placement.allocations(server.uuid)
        after = {uuid: dict(amounts) for uuid, amounts in held.items()}
        for uuid, taken in offers[0].allocations.items():
            _add(after, uuid, taken["resources"])
        return ClaimChange(held, after, offers[0].mappings)

    def less(self, server: Server, port: PortRecord) -> ClaimChange:
        """Without what the port had where it is bound."""
        held, _ = self._placement.allocations(server.uuid)
        after = {uuid: dict(amounts) for uuid, amounts in held.items()}
        serving = port.served.get(server.host or "", {})
        for group in port.needs.groups:
            if group.id in serving:
                _add(after, serving[group.id], {name: -amount for name, amount in group.resources.items()})
        left = {uuid: {name: n for name, n in amounts.items() if n > 0} for uuid, amounts in after.items()}
        return ClaimChange(held, {uuid: amounts for uuid, amounts in left.items() if amounts})

    def make_true(self, server: Server, change: ClaimChange) -> bool:
        """False if the server holds something else by now, or if there is no room any more."""
        held, generation = self._placement.allocations(server.uuid)
        if held == change.after:
            return True
        if held != change.before:
            return False
        claim = ConsumerClaim(
            server.uuid,
            change.after,
            server.project_id,
            server.user_id,
            consumer_generation=generation,
        )
        return self._placement.claim_together([claim]) is None


def may_plan_again(work: Work[Any]) -> bool:
    """What was planned could not be made true; another writer changes the claim, too, but not for ever."""
    work.state.plans += 1
    return bool(work.state.plans < _MOST_PLANS)


def _add(allocations: Allocations, uuid: str, amounts: Mapping[str, int]) -> None:
    held = allocations.setdefault(uuid, {})
    for name, amount in amounts.items():
        held[name] = held.get(name, 0) + amount
