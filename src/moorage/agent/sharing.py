"""Sharing: what several hosts offer together is one provider in Placement, joined to theirs by an aggregate.

Only that aggregate is ours: a provider is in others because an operator put its host there, and stays there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from moorage.agent.journal import Journal
from moorage.drivers.contract import Node
from moorage.placement.client.contract import (
    PlacementClient,
    PlacementRefusedError,
    PlacementUnavailableError,
    ProviderAggregates,
)

LOG = logging.getLogger(__name__)


class Sharing:
    def __init__(self, placement: PlacementClient, journal: Journal) -> None:
        self._placement = placement
        self._journal = journal
        self._joined = journal.shared_through
        """By node, the aggregate that we put it into."""
        self._settled: dict[str, str] = {}
        self._forgotten = threading.Event()

    def settle(self, nodes: Sequence[Node]) -> bool:
        """Have the providers of these nodes be where they share; False if that is to be tried again."""
        if self._forgotten.is_set():
            self._forgotten.clear()
            self._settled = {}
        wanted = {node.uuid: node.shared_through for node in nodes}
        due = {
            uuid: aggregate
            for uuid, aggregate in wanted.items()
            if (aggregate or self._joined.get(uuid)) and self._settled.get(uuid) != aggregate
        }
        if not due:
            return True
        try:
            return self._change(due)
        except (PlacementUnavailableError, PlacementRefusedError) as error:
            LOG.warning("Placement does not know yet what is shared with whom: %s", error)
            return False

    def forget(self) -> None:
        """Look again next time, in case somebody changed it in Placement."""
        self._forgotten.set()

    def _change(self, due: dict[str, str]) -> bool:
        found = self._placement.aggregates(due.keys())
        changes = []
        for uuid, provider in found.items():
            left = provider.aggregates - {self._joined.get(uuid, "")}
            target = left | ({due[uuid]} if due[uuid] else frozenset())
            if target != provider.aggregates:
                changes.append(ProviderAggregates(uuid, provider.generation, target))
        self._remember(due)
        refused = self._placement.set_aggregates(changes) if changes else {}
        self._settled |= {uuid: due[uuid] for uuid in found if uuid not in refused}
        return not refused and found.keys() == due.keys()

    def _remember(self, due: dict[str, str]) -> None:
        """Where a provider is about to be, it has to leave one day, even if we end before it is there."""
        joined = self._joined | {uuid: aggregate for uuid, aggregate in due.items() if aggregate}
        if joined != self._joined:
            self._journal.shared_through = joined
            self._joined = joined
