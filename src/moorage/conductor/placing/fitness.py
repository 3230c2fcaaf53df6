"""Fitness: whether the node that a server is on may run it with another image.

What an image can change is checked as at a boot: traits, isolation by aggregates, architecture. What it
can't is not: the server has its room, and it stays though its host was disabled or set apart since. So
Placement is asked about providers, never for candidates, which a full host is none of.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.compute.servers.server import Server
from moorage.deciding.hosts import Hosts
from moorage.placement.client.contract import PlacementClient, PlacementRefusedError
from moorage.scheduler.errors import SchedulingError
from moorage.scheduler.filters.image_properties import ImagePropertiesFilter
from moorage.scheduler.prefilters import contract as prefilters
from moorage.scheduler.prefilters.image_traits import ImageTraits
from moorage.scheduler.request import Request, from_flavor
from moorage.scheduler.settings import SchedulerSettings
from moorage.scheduler.story import NO_VALID_HOST


class Fitness:
    def __init__(
        self,
        hosts: Hosts,
        aggregates: KnownAggregates,
        placement: PlacementClient,
        settings: SchedulerSettings,
    ) -> None:
        self._hosts = hosts
        self._aggregates = aggregates
        self._placement = placement
        self._settings = settings

    def objection(self, server: Server) -> str | None:
        """What speaks against the server's image on its node: a sentence, or None."""
        try:
            found = next(self._objections(self._request(server), server.on_node), None)
        except (SchedulingError, PlacementRefusedError) as error:
            return f"{NO_VALID_HOST}: {error}"
        return None if found is None else f"{NO_VALID_HOST}: {found}."

    def _request(self, server: Server) -> Request:
        properties = (server.request.get("image") or {}).get("properties") or {}
        return prefilters.narrow(
            from_flavor(server.uuid, server.flavor, properties, aliases=self._settings.pci_aliases),
            (
                ImageTraits(properties),
                *self._settings.image_hardware(properties),
                *self._settings.image_isolation(self._aggregates.facts(), properties),
            ),
        )

    def _objections(self, request: Request, node_uuid: str) -> Iterator[str]:
        """Our own books come first: Placement's mirror of the aggregates may lag behind them."""
        state = self._hosts.states([node_uuid]).get(node_uuid)
        if state is None:
            yield "its host is not known any more"
            return
        traits = frozenset().union(*(group.required_traits for group in request.groups))
        missing = [trait for trait in sorted(traits) if not self._placement.tree_has(node_uuid, [trait])]
        if missing:
            yield f"its host does not have {', '.join(missing)}"
        for narrowing in request.narrowings:
            admitted = narrowing.admits(state.aggregates)
            if not (admitted and self._placement.is_among(node_uuid, [narrowing.member_of])):
                yield f"its host is one of those that {narrowing.unmet()}"
        check = ImagePropertiesFilter()
        reason = check.objection(state, request) if check.applies(request) else None
        if reason is not None:
            yield f"of its host it is known that {reason}"
