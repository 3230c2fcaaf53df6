"""Offers: Placement's candidates, sorted out by node, so that many servers can be decided from one answer."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from moorage.placement.client.contract import AllocationRequest, Candidates, ProviderSummary


@dataclass(slots=True)
class Offer:
    """One tree that can serve the query, and the ways in which it can."""

    node_uuid: str
    ways: list[AllocationRequest] = field(default_factory=list)
    free: dict[str, int] = field(default_factory=dict)
    """By resource class, over the tree and what it shares in."""
    shares: bool = False
    """Whether some way uses a provider of another tree."""
    room: dict[tuple[str, str], int] = field(default_factory=dict)
    """What is free, by provider and resource class, of all providers that some way uses."""


@dataclass(frozen=True, slots=True)
class Offers:
    candidates: int
    by_node: dict[str, Offer]


def offers(candidates: Candidates, nodes: Container[str], apart: Sequence[str] = ()) -> Offers:
    """Sort candidates out by node, in Placement's order, without those where one provider serves two groups
    of those that have to be `apart`.

    A candidate may use providers of several trees where one shares with others; that one among them which is
    in `nodes` is where the server would be.
    """
    summaries = candidates.provider_summaries
    found: dict[str, Offer] = {}
    for way in candidates.allocation_requests:
        if apart and not _is_apart(way, apart):
            continue
        node = _node(way, summaries, nodes)
        offer = found.get(node)
        if offer is None:
            offer = found[node] = Offer(node)
        offer.ways.append(way)
    trees: dict[str, list[str]] = {}
    for uuid, summary in summaries.items():
        trees.setdefault(summary.root_provider_uuid or uuid, []).append(uuid)
    for offer in found.values():
        _count(offer, summaries, trees.get(offer.node_uuid, []))
    return Offers(len(candidates.allocation_requests), found)


def roots(candidates: Candidates) -> set[str]:
    """The trees that take part: those among them that are nodes are whom the caller has to look up."""
    return {summary.root_provider_uuid or uuid for uuid, summary in candidates.provider_summaries.items()}


def _is_apart(way: AllocationRequest, suffixes: Sequence[str]) -> bool:
    """A Placement that does not say who serves which group is taken at its word."""
    serving = [uuid for suffix in suffixes for uuid in way.mappings.get(suffix, ())]
    return len(serving) == len(set(serving))


def _node(way: AllocationRequest, summaries: dict[str, ProviderSummary], nodes: Container[str]) -> str:
    taking_part = [summaries[uuid].root_provider_uuid or uuid for uuid in way.allocations]
    if len(taking_part) > 1:
        taking_part = [root for root in taking_part if root in nodes] or taking_part
    return taking_part[0]


def _count(offer: Offer, summaries: dict[str, ProviderSummary], tree: list[str]) -> None:
    serving = dict.fromkeys(tree)
    for way in offer.ways:
        serving.update(dict.fromkeys(way.allocations))
    offer.shares = len(serving) > len(tree)
    for uuid in serving:
        for name, numbers in summaries[uuid].resources.items():
            room = numbers["capacity"] - numbers["used"]
            offer.free[name] = offer.free.get(name, 0) + room
            offer.room[uuid, name] = room
