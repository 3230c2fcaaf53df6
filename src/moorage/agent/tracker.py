"""Keeps Placement's picture of this host's nodes true: reports what changed, or all after an outage."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from prometheus_client import Counter

from moorage.agent.journal import Journal
from moorage.agent.reported_traits import ReportedTraits
from moorage.agent.trees import OldTree, Trees
from moorage.drivers.contract import Inventory, Node, child_uuid
from moorage.placement.client.contract import (
    PlacementClient,
    PlacementRefusedError,
    PlacementUnavailableError,
    ReportedProvider,
)

LOG = logging.getLogger(__name__)

REPORTED = Counter("moorage_agent_nodes_reported_total", "Nodes whose inventory was reported to Placement.")
DISABLED_TRAIT = "COMPUTE_STATUS_DISABLED"
_MOST_TOGETHER = 2_000


class _Terms(NamedTuple):
    """What is said of all nodes of the host."""

    disabled: bool
    ratios: Mapping[str, float]


class _Report(NamedTuple):
    """What is said of a node, and what it was made from: as long as that stands, nothing is made anew."""

    node: Node
    terms: _Terms
    told: frozenset[str]
    told_below: tuple[frozenset[str], ...]
    """Of its children."""
    encoded: bytes


class _News(NamedTuple):
    """What Placement has to be told of a node."""

    report: _Report
    providers: list[ReportedProvider]
    old: OldTree | None = None
    """Of a tree that has another shape now."""


class Tracker:
    """A node that is missing from a listing keeps its provider: a listing is no proof that it is gone.

    Of a provider's traits only those are ours that an owner of the node ever told Placement of. Others were
    set by hand, or by somebody else, and stay.
    """

    def __init__(self, placement: PlacementClient, journal: Journal) -> None:
        self._placement = placement
        self._traits = ReportedTraits(journal)
        self._trees = Trees(placement, journal)
        self._reported: dict[str, _Report] = {}
        self._terms = _Terms(disabled=False, ratios={})
        self._forgotten = threading.Event()
        """Set by another thread than that which reports."""
        self.disabled = False
        self.ratios: Mapping[str, float] = {}
        """By resource class: allocation ratios that win over the driver's."""

    def report(self, nodes: Sequence[Node]) -> bool:
        """Report what is not known to be reported already; False if Placement could not be reached."""
        if self._forgotten.is_set():
            self._forgotten.clear()
            self._reported.clear()
        if (self.disabled, self.ratios) != self._terms:
            self._terms = _Terms(self.disabled, dict(self.ratios))
        self._drop_others({node.uuid for node in nodes})
        changed = self._news(nodes)
        self._traits.add({one.uuid: one.add_traits or () for news in changed for one in news.providers})
        try:
            ready = list(filter(None, map(self._settled, changed)))
            for start in range(0, len(ready), _MOST_TOGETHER):
                for sent in self._send(ready[start : start + _MOST_TOGETHER]):
                    self._keep(sent)
        except PlacementUnavailableError as error:
            # It may come back with an older memory than ours: then nothing is taken for granted.
            self._reported.clear()
            LOG.warning("Placement can't be reached, all nodes will be reported again: %s", error)
            return False
        return len(ready) == len(changed)

    def forget(self) -> None:
        """Report everything next time, in case somebody changed it in Placement."""
        self._forgotten.set()

    def inherit(self, traits: Mapping[str, Collection[str]]) -> None:
        """Earlier owners of nodes told Placement of these: they are ours to take away now."""
        self._traits.add(traits)

    def _drop_others(self, listed: set[str]) -> None:
        if not self._reported.keys() <= listed:
            self._reported = {uuid: known for uuid, known in self._reported.items() if uuid in listed}

    def _news(self, nodes: Sequence[Node]) -> list[_News]:
        found = []
        for node in nodes:
            known = self._reported.get(node.uuid)
            told = self._traits.of(node.uuid)
            below = self._told_below(node) if node.children else ()
            settled = node.children is None or self._trees.is_settled(node)
            if known is not None and settled and known[:4] == (node, self._terms, told, below):
                continue
            providers = [self._provider(node, told), *self._children(node, below)]
            report = _Report(node, self._terms, told, below, msgspec.msgpack.encode(providers))
            if known is not None and settled and known.encoded == report.encoded:
                self._reported[node.uuid] = report
            else:
                found.append(_News(report, providers))
        return found

    def _settled(self, news: _News) -> _News | None:
        """With room made for a tree of another shape; None if that has to be tried again."""
        node = news.report.node
        if node.children is None or self._trees.is_settled(node):
            return news
        try:
            old = self._trees.settle(node, news.providers)
        except PlacementRefusedError as error:
            LOG.error("Placement refuses the tree of node %s: %s", node.uuid, error.detail)
            return None
        return news._replace(providers=_with_kept(news.providers, old.kept), old=old)

    def _send(self, news: Sequence[_News]) -> list[_News]:
        """Those that Placement took; one that it refuses must not keep the others from being known."""
        if not news:
            return []
        try:
            self._placement.report([provider for each in news for provider in each.providers])
        except PlacementRefusedError as error:
            if len(news) == 1:
                node = news[0].report.node
                LOG.error("Placement refuses node %s: %s", node.uuid, error.detail)
                self._trees.forget(node.uuid)
                return []
            half = len(news) // 2
            return self._send(news[:half]) + self._send(news[half:])
        return list(news)

    def _keep(self, sent: _News) -> None:
        """Placement knows of it."""
        node = sent.report.node
        self._reported[node.uuid] = sent.report
        REPORTED.inc()
        if sent.old is not None:
            self._trees.finish(node, sent.old)

    def _told_below(self, node: Node) -> tuple[frozenset[str], ...]:
        return tuple(self._traits.of(child_uuid(node.uuid, child.name)) for child in node.children or ())

    def _children(self, node: Node, told: Sequence[frozenset[str]]) -> Iterator[ReportedProvider]:
        """What is below it, parents first."""
        for child, known in zip(node.children or (), told, strict=True):
            yield ReportedProvider(
                uuid=child_uuid(node.uuid, child.name),
                name=child.name,
                inventories=self._inventories(child.inventories),
                parent_provider_uuid=child_uuid(node.uuid, child.parent) if child.parent else node.uuid,
                add_traits=sorted(child.traits),
                remove_traits=sorted(known.difference(child.traits)),
            )

    def _provider(self, node: Node, told: frozenset[str]) -> ReportedProvider:
        traits = {*node.traits, DISABLED_TRAIT} if self._terms.disabled else set(node.traits)
        return ReportedProvider(
            uuid=node.uuid,
            name=node.name,
            inventories=self._inventories(node.inventories),
            add_traits=sorted(traits),
            remove_traits=sorted((told | {DISABLED_TRAIT}) - traits),
        )

    def _inventories(self, inventories: Mapping[str, Inventory]) -> dict[str, dict[str, Any]]:
        return {
            name: msgspec.to_builtins(self._with_ratio(name, inventory))
            for name, inventory in sorted(inventories.items())
        }

    def _with_ratio(self, name: str, inventory: Inventory) -> Inventory:
        ratio = self._terms.ratios.get(name, inventory.allocation_ratio)
        return msgspec.structs.replace(inventory, allocation_ratio=ratio)


def _with_kept(
    providers: Sequence[ReportedProvider], kept: Sequence[ReportedProvider]
) -> list[ReportedProvider]:
    """What has to stay is reported beside what there is now, of the same provider or of one that is gone."""
    found = {provider.uuid: provider for provider in providers}
    for provider in kept:
        same = found.get(provider.uuid, provider)
        inventories = {**(provider.inventories or {}), **(same.inventories or {})}
        found[provider.uuid] = msgspec.structs.replace(same, inventories=inventories)
    return list(found.values())
