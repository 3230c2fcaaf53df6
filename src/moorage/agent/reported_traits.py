"""The traits of nodes that this host, or an earlier owner of theirs, has ever told Placement of.

Only these are taken away again once a node has them no more: others were set by hand, or by somebody else.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping

from moorage.agent.journal import Journal

_NONE: frozenset[str] = frozenset()


class ReportedTraits:
    """Kept in the journal. What is told of a node, and what is heard of it, come from different threads."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._traits = journal.reported_traits()

    def of(self, node_uuid: str) -> frozenset[str]:
        """The same object until there are more."""
        return self._traits.get(node_uuid, _NONE)

    def add(self, traits: Mapping[str, Collection[str]]) -> None:
        """These are ours from now on, even if we end before we know that Placement heard of them."""
        sets: dict[frozenset[str], frozenset[str]] = {}  # most nodes have the same ones
        with self._lock:
            new: dict[str, frozenset[str]] = {}
            for uuid, more in traits.items():
                union = self.of(uuid).union(more)
                if union != self.of(uuid):
                    new[uuid] = sets.setdefault(union, union)
            if new:
                self._journal.add_reported_traits(new)
                self._traits |= new
