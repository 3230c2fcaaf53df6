"""The availability zone that a user asked for, as the aggregates that make it up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.scheduler.errors import NoHostAllowedError
from moorage.scheduler.request import Request


@dataclass(frozen=True, slots=True)
class AvailabilityZone:
    aggregates_of: Mapping[str, frozenset[str]]
    """By zone: the aggregates that carry its name."""
    default_zone: str
    """The zone of all hosts that no aggregate puts into another one."""

    def narrow(self, request: Request) -> Request:
        zone = request.zone
        if zone is None:
            return request
        aggregates = self.aggregates_of.get(zone, frozenset())
        if aggregates:
            return request.narrowed(lambda group: group.in_one_of(aggregates))
        if zone != self.default_zone:
            raise NoHostAllowedError(f"Availability zone '{zone}' has no hosts.")
        others = frozenset(uuid for uuids in self.aggregates_of.values() for uuid in uuids)
        return request.narrowed(lambda group: group.outside(others)) if others else request
