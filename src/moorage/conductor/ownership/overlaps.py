"""Overlaps: hosts that serve some of the same nodes, but don't share them out among each other.

Nothing breaks by that, since a node has one owner: whoever was first. But nodes then go where nobody meant
them to, and stay there; so operators are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from enum import StrEnum
from itertools import combinations
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.hosts import liveness, peers
from moorage.compute.hosts.peers import TERMS
from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.db.order import by_character
from moorage.db.tables.compute import services
from moorage.drivers.served_nodes import ServedNodes
from moorage.drivers.shared_nodes import has_pool


class OverlapReason(StrEnum):
    PARTITIONS = "they serve different partitions, and some nodes are in both"
    SELECTION = "they have different values of node_selection, or of shared_capacity"
    PEERS = "the peer_list of one does not name the other"


class Serving(NamedTuple):
    """Hosts that say the same of what they serve, and with whom."""

    hosts: tuple[str, ...]
    served: ServedNodes
    terms: Mapping[str, Any]

    def __str__(self) -> str:
        chosen = ", by reservation" if has_pool(self.terms) else ""
        return f"{', '.join(self.hosts)} ({self.served}{chosen})"


class Overlap(NamedTuple):
    one: Serving
    other: Serving
    reason: OverlapReason

    def __str__(self) -> str:
        hosts = f"{self.one}" if self.one is self.other else f"{self.one} and {self.other}"
        return f"{hosts}: {self.reason.value}"


def find(connection: Connection, down_after: timedelta) -> list[Overlap]:
    """Of the hosts that are up."""
    query = sa.select(services.c.host, services.c.facts).where(
        services.c.binary == AGENT_BINARY, liveness.is_up(down_after)
    )
    found = connection.execute(query.order_by(by_character(services.c.host)))
    return among({host: facts[TERMS] for host, facts in found if facts.get(TERMS) is not None})


def among(terms: Mapping[str, Mapping[str, Any]]) -> list[Overlap]:
    """By host, what it says of the nodes that it serves."""
    alike = _alike(terms)
    within = [
        Overlap(one, one, OverlapReason.PEERS)
        for one in alike
        if len(one.hosts) > 1 and not _know_each_other(one, one)
    ]
    return within + [
        Overlap(one, other, reason)
        for one, other in combinations(alike, 2)
        if (reason := _reason(one, other)) is not None
    ]


def _alike(terms: Mapping[str, Mapping[str, Any]]) -> list[Serving]:
    """Few, even of many hosts."""
    found: list[tuple[Mapping[str, Any], list[str]]] = []
    for host, said in terms.items():
        hosts = next((hosts for known, hosts in found if known == said), None)
        if hosts is None:
            found.append((said, [host]))
        else:
            hosts.append(host)
    return [Serving(tuple(hosts), ServedNodes.read(said), said) for said, hosts in found]


def _reason(one: Serving, other: Serving) -> OverlapReason | None:
    if not one.served.meets(other.served):
        return None
    if one.served != other.served:
        return OverlapReason.PARTITIONS
    if not peers.same(one.terms, other.terms):
        return OverlapReason.SELECTION
    return None if _know_each_other(one, other) else OverlapReason.PEERS


def _know_each_other(one: Serving, other: Serving) -> bool:
    return _names(one.terms, other.hosts) and _names(other.terms, one.hosts)


def _names(terms: Mapping[str, Any], hosts: Iterable[str]) -> bool:
    """A host that names nobody takes all, and each is its own peer."""
    listed = set(terms.get("peers") or ())
    return not listed or listed.issuperset(hosts)
