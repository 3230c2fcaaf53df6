"""How many messages wait in the broker: whoever does not keep up is seen before it is late."""

from __future__ import annotations

import logging
import threading

from prometheus_client import Gauge

from moorage.bus.contract import BusError
from moorage.bus.host_queues import HostQueues, Whose

LOG = logging.getLogger(__name__)
DEPTH = Gauge("moorage_bus_queue_messages", "Messages that wait in the broker, by who draws them.", ["queue"])

_INTERVAL = 30.0


class QueueWatch:
    """Every conductor looks, and they all see the same: who adds them up counts twice."""

    def __init__(self, queues: HostQueues) -> None:
        self._queues = queues
        self._shown: set[Whose] = set()
        self._stopping = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._watch, name="watch of the queues", daemon=True).start()

    def stop(self) -> None:
        """Nobody waits for it: a broker that takes connections and says nothing would keep us from ending."""
        self._stopping.set()

    def _watch(self) -> None:
        while not self._stopping.is_set():
            try:
                self.look()
            except Exception:
                LOG.exception("the queues can't be looked at, and are looked at again later")
            self._stopping.wait(_INTERVAL)

    def look(self) -> None:
        """What is not known is not shown, rather than as it was. Health says that the broker is away."""
        try:
            found = self._queues.waiting()
        except BusError as error:
            LOG.debug("it is not known how many messages wait: %s", error)
            found = {}
        for gone in self._shown - found.keys():
            DEPTH.remove(gone)
        for whose, messages in found.items():
            DEPTH.labels(whose).set(messages)
        self._shown = set(found)
