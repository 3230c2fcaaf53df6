"""What the ports of servers need, put into their requests: bandwidth as groups, segments as aggregates.

A segment is a provider in Placement, which Neutron made, in an aggregate with the hosts that reach it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.network.contract import PortGroup, PortNeeds
from moorage.placement.client.contract import PlacementClient
from moorage.scheduler.errors import NoHostAllowedError
from moorage.scheduler.groups import RequestGroup
from moorage.scheduler.narrowing import NarrowedBy
from moorage.scheduler.request import Request

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class SegmentAggregates:
    """Which aggregates stand for the segments that requests name."""

    aggregates_of: Mapping[str, frozenset[str]]
    """By segment; one that Placement does not know is missing."""

    def narrow(self, request: Request, asked: Mapping[str, Any]) -> Request:
        for needs in of(asked):
            request = self._inside(added(request, needs), needs)
        return request

    def _inside(self, request: Request, needs: PortNeeds) -> Request:
        if needs.segments is None:
            return request
        if not needs.segments:
            raise NoHostAllowedError(f"No addresses are left on network '{needs.network_name}'.")
        known = [self.aggregates_of.get(segment) for segment in needs.segments]
        if not all(known):
            LOG.warning("Placement does not know all segments of network %s", needs.network_name)
            return request  # binding will tell which hosts reach them
        aggregates = frozenset().union(*(each for each in known if each))
        return request.inside(aggregates, NarrowedBy.SEGMENTS, needs.network_name)


def look_up(placement: PlacementClient, asked: Iterable[Mapping[str, Any]]) -> SegmentAggregates:
    """For requests, as servers keep them; nothing is asked if none of their ports minds."""
    segments = {segment for request in asked for needs in of(request) for segment in needs.segments or ()}
    if not segments:
        return SegmentAggregates({})
    return SegmentAggregates(
        {uuid: found.aggregates for uuid, found in placement.aggregates(segments).items()}
    )


def of(asked: Mapping[str, Any]) -> list[PortNeeds]:
    return [msgspec.convert(port["needs"], PortNeeds) for port in asked.get("ports", ()) if port.get("needs")]


def added(request: Request, needs: PortNeeds) -> Request:
    """With the groups of a port."""
    groups = [_group(group) for group in needs.groups]
    subtree = [[f"_{uuid}" for uuid in needs.same_subtree]] if needs.same_subtree else []
    return request.needing(groups, subtree)


def _group(group: PortGroup) -> RequestGroup:
    return RequestGroup(group.suffix, dict(group.resources), required_traits=frozenset(group.required))
