"""How many machines of a partition are in which state, as a metric: all its hosts say the same."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter

from prometheus_client import Gauge

from moorage.drivers.ironic.nodes import machines
from moorage.drivers.ironic.nodes.known_nodes import Records
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.machines import MachineState

LOG = logging.getLogger(__name__)
NODES = Gauge(
    "moorage_ironic_nodes",
    "Nodes of the partition that the agent serves, by state; all agents of a partition say the same.",
    ["partition", "state"],
)


class StateCounts:
    def __init__(self) -> None:
        self._partition: Partition | None = None
        self._seen: Records | None = None

    def look(self, partition: Partition, records: Records) -> None:
        """Counts only if something has changed: there may be very many."""
        if self._partition is not None and self._partition.served != partition.served:
            for state in MachineState:
                with contextlib.suppress(KeyError):  # another host of this process may have been quicker
                    NODES.remove(str(self._partition.served), state.value)
            self._seen = None
        if records is self._seen:
            return
        if not records and (self._seen is None or self._seen):
            LOG.warning("this host serves %s, which has no nodes", partition.served)
        self._partition, self._seen = partition, records
        counts = Counter(machines.state(record) for record in records.values())
        for state in MachineState:
            NODES.labels(str(partition.served), state.value).set(counts[state])
