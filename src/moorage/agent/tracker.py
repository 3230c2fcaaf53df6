"""Keeps Placement's picture of this host's nodes true: reports what changed, or all after an outage."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

import msgspec
from prometheus_client import Counter

from moorage.agent.journal import Journal
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


class Tracker:
    """A node that is missing from a listing keeps its provider: a listing is no proof that it is gone.

    Of a provider's traits only those are ours that we ever told Placement of; the journal remembers them.
    Others were set by hand, or by somebody else, and stay.
    """

    def __init__(self, placement: PlacementClient, journal: Journal) -> None:
        self._placement = placement
        self._journal = journal
        self._told = journal.told_traits()
        self._reported: dict[str, bytes] = {}
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
        wished = [self._provider(node) for node in nodes]
        encoded = {provider.uuid: msgspec.msgpack.encode(provider) for provider in wished}
        self._reported = {uuid: known for uuid, known in self._reported.items() if uuid in encoded}
        changed = [
            provider for provider in wished if self._reported.get(provider.uuid) != encoded[provider.uuid]
        ]
        self._remember(changed)
        try:
            for start in range(0, len(changed), _MOST_TOGETHER):
                for provider in self._send(changed[start : start + _MOST_TOGETHER]):
                    self._reported[provider.uuid] = encoded[provider.uuid]
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

    def _remember(self, providers: Sequence[ReportedProvider]) -> None:
        """What we are about to tell is ours from now on, even if we end before we know that it was heard."""
        new: dict[str, frozenset[str]] = {}
        sets: dict[frozenset[str], frozenset[str]] = {}  # most nodes have the same ones
        for provider in providers:
            told = self._told.get(provider.uuid, frozenset())
            ours = told.union(provider.add_traits or ())
            if ours != told:
                new[provider.uuid] = sets.setdefault(ours, ours)
        if new:
            self._journal.tell_traits(new)
            self._told |= new

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

    def _with_ratio(self, name: str, inventory: Inventory) -> Inventory:
        ratio = self.ratios.get(name, inventory.allocation_ratio)
        return msgspec.structs.replace(inventory, allocation_ratio=ratio)

    def _provider(self, node: Node) -> ReportedProvider:
        traits = {*node.traits, DISABLED_TRAIT} if self.disabled else set(node.traits)
        ours = self._told.get(node.uuid, frozenset()) | {DISABLED_TRAIT}
        return ReportedProvider(
            uuid=node.uuid,
            name=node.name,
            inventories={
                name: msgspec.to_builtins(self._with_ratio(name, inventory))
                for name, inventory in sorted(node.inventories.items())
            },
            add_traits=sorted(traits),
            remove_traits=sorted(ours - traits),
        )
