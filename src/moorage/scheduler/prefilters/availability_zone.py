"""The availability zone that a user asked for, as the aggregates that make it up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.scheduler.errors import NoHostAllowedError
from moorage.scheduler.narrowing import NarrowedBy
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
        if zone == self.default_zone:
            return request.outside(self._other_zones(), NarrowedBy.DEFAULT_ZONE, zone)
        aggregates = self.aggregates_of.get(zone, frozenset())
        if not aggregates:
            raise NoHostAllowedError(f"Availability zone '{zone}' has no hosts.")
        return request.inside(aggregates, NarrowedBy.ZONE, zone)

    def _other_zones(self) -> frozenset[str]:
        others = (uuids for zone, uuids in self.aggregates_of.items() if zone != self.default_zone)
        return frozenset().union(*others)
