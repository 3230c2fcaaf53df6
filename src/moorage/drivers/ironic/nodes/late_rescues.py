"""Rescues that nobody wants any more: an order was given late, by an agent that was frozen meanwhile.

Ironic refuses no such order, and whoever gave it may be dead. So the owner of a node looks whether it is
rescued for something, and has it unrescued if it is not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from prometheus_client import Counter

from moorage.drivers.contract import DriverError
from moorage.drivers.ironic.api.client import IronicError
from moorage.drivers.ironic.api.record import ACTIVE, RESCUED_STATES, NodeRecord
from moorage.drivers.ironic.api.writer import Writer
from moorage.drivers.ironic.servers import rescue_mark

LOG = logging.getLogger(__name__)

UNDONE = Counter("moorage_ironic_late_rescues_total", "Rescues that nobody wanted any more, and were undone.")


class LateRescues:
    def __init__(self, examine: Callable[[str], NodeRecord | None], writer: Callable[[str], Writer]) -> None:
        """`writer` gives one for a node of ours."""
        self._examine = examine
        self._writer = writer
        self._undone: set[str] = set()
        """Nodes of which we have not yet seen that they are themselves again."""

    def look(self, records: Iterable[NodeRecord]) -> None:
        """There are few that are rescued: each is looked at, every time."""
        suspects = [one for one in records if one.state in RESCUED_STATES or one.uuid in self._undone]
        for listed in suspects:
            try:
                record = self._examine(listed.uuid)
                if record is not None and rescue_mark.is_late(record):
                    self._undo(record)
                elif record is not None and record.state == ACTIVE and record.uuid in self._undone:
                    self._forget(record)
            except (IronicError, DriverError) as error:
                LOG.info("node %s is looked at again later: %s", listed.uuid, error)

    def _undo(self, record: NodeRecord) -> None:
        """Late: as any order to unrescue. It is not waited for: if it fails, it is given again next time."""
        LOG.warning("node %s was rescued by an order that came too late, and is unrescued", record.uuid)
        self._writer(record.uuid).unrescue()
        self._undone.add(record.uuid)
        UNDONE.inc()

    def _forget(self, record: NodeRecord) -> None:
        """What came late has come: from now on an operator may rescue the node by hand."""
        notes = rescue_mark.order_paths(record)
        if notes:
            self._writer(record.uuid).forget(*notes)
        self._undone.discard(record.uuid)
