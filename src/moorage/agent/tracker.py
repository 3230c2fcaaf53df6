"""Keeps Placement's picture of this host's nodes true: reports what changed, or all after an outage."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec
from prometheus_client import Counter

from moorage.agent.journal import Journal
from moorage.agent.reported_traits import ReportedTraits
from moorage.drivers.contract import Inventory, Node
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
    encoded: bytes


class Tracker:
    """A node that is missing from a listing keeps its provider: a listing is no proof that it is gone.

    Of a provider's traits only those are ours that an owner of the node ever told Placement of. Others were
    set by hand, or by somebody else, and stay.
    """

    def __init__(self, placement: PlacementClient, journal: Journal) -> None:
        self._placement = placement
        self._traits = ReportedTraits(journal)
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
        self._traits.add({provider.uuid: provider.add_traits or () for provider, _ in changed})
        reports = {provider.uuid: report for provider, report in changed}
        try:
            for start in range(0, len(changed), _MOST_TOGETHER):
                for provider in self._send([one for one, _ in changed[start : start + _MOST_TOGETHER]]):
                    self._reported[provider.uuid] = reports[provider.uuid]
                    REPORTED.inc()
        except PlacementUnavailableError as error:
            # It may come back with an older memory than ours: then nothing is taken for granted.
            self._reported.clear()
            LOG.warning("Placement can't be reached, all nodes will be reported again: %s", error)
            return False
        return True

    def forget(self) -> None:
        """Report everything next time, in case somebody changed it in Placement."""
        self._forgotten.set()

    def inherit(self, traits: Mapping[str, Collection[str]]) -> None:
        """Earlier owners of nodes told Placement of these: they are ours to take away now."""
        self._traits.add(traits)

    def _drop_others(self, listed: set[str]) -> None:
        if not self._reported.keys() <= listed:
            self._reported = {uuid: known for uuid, known in self._reported.items() if uuid in listed}

    def _news(self, nodes: Sequence[Node]) -> list[tuple[ReportedProvider, _Report]]:
        found = []
        for node in nodes:
            known = self._reported.get(node.uuid)
            told = self._traits.of(node.uuid)
            if known is not None and known[:3] == (node, self._terms, told):
                continue
            provider = self._provider(node, told)
            report = _Report(node, self._terms, told, msgspec.msgpack.encode(provider))
            if known is not None and known.encoded == report.encoded:
                self._reported[node.uuid] = report
            else:
                found.append((provider, report))
        return found

    def _send(self, providers: Sequence[ReportedProvider]) -> list[ReportedProvider]:
        """Those that Placement took; one that it refuses must not keep the others from being known."""
        if not providers:
            return []
        try:
            self._placement.report(providers)
        except PlacementRefusedError as error:
            if len(providers) == 1:
                LOG.error("Placement refuses node %s: %s", providers[0].uuid, error.detail)
                return []
            half = len(providers) // 2
            return self._send(providers[:half]) + self._send(providers[half:])
        return list(providers)

    def _provider(self, node: Node, told: frozenset[str]) -> ReportedProvider:
        traits = {*node.traits, DISABLED_TRAIT} if self._terms.disabled else set(node.traits)
        return ReportedProvider(
            uuid=node.uuid,
            name=node.name,
            inventories={
                name: msgspec.to_builtins(self._with_ratio(name, inventory))
                for name, inventory in sorted(node.inventories.items())
            },
            add_traits=sorted(traits),
            remove_traits=sorted((told | {DISABLED_TRAIT}) - traits),
        )

    def _with_ratio(self, name: str, inventory: Inventory) -> Inventory:
        ratio = self._terms.ratios.get(name, inventory.allocation_ratio)
        return msgspec.structs.replace(inventory, allocation_ratio=ratio)
