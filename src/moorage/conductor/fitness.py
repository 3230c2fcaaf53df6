"""Fitness: whether the node that a server is on could run it with another image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.conductor.hosts import Hosts
from moorage.placement.client.contract import PlacementClient, PlacementRefusedError
from moorage.scheduler.errors import SchedulingError
from moorage.scheduler.filters.image_properties import ImagePropertiesFilter
from moorage.scheduler.prefilters.image_traits import ImageTraits
from moorage.scheduler.request import from_flavor


class Fitness:
    def __init__(self, hosts: Hosts, placement: PlacementClient) -> None:
        self._hosts = hosts
        self._placement = placement

    def objection(self, server: Mapping[str, Any]) -> str | None:
        """What speaks against the server's image on its node: a sentence, or None."""
        properties = (server["request"].get("image") or {}).get("properties") or {}
        try:
            request = from_flavor(server["uuid"], server["flavor"], properties)
            wanted = ImageTraits(properties).narrow(from_flavor(server["uuid"], server["flavor"]))
            traits = frozenset().union(*(group.required_traits for group in wanted.groups))
            missing = [
                trait
                for trait in sorted(traits)
                if not self._placement.tree_has(server["node_uuid"], [trait])
            ]
            if missing:
                return f"No valid host was found: its host does not have {', '.join(missing)}."
        except (SchedulingError, PlacementRefusedError) as error:
            return f"No valid host was found: {error}"
        state = self._hosts.states([server["node_uuid"]]).get(server["node_uuid"])
        if state is None:
            return "No valid host was found: its host is not known any more."
        check = ImagePropertiesFilter()
        reason = check.objection(state, request) if check.applies(request) else None
        return None if reason is None else f"No valid host was found: of its host it is known that {reason}."
