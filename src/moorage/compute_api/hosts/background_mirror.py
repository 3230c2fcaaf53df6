"""Placement is told of aggregates beside the request: soon if it answers, by a conductor if it doesn't."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable

from moorage.compute.aggregates.mirror import Mirror

LOG = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds that a caller waits for Placement to be told."""
MOST_AT_ONCE = 8
"""Tries that may hang in a Placement that doesn't answer; what comes after is the conductors' matter."""


class BackgroundMirror:
    """What is told here is in the outbox already, so nothing is lost with a try that fails or dies."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._free = threading.Semaphore(MOST_AT_ONCE)

    def follow_host(self, host: str, event: str) -> None:
        self._tell(lambda: self._mirror.follow_host(host, event))

    def follow_deletion(self, aggregate_uuid: str) -> None:
        self._tell(lambda: self._mirror.follow_deletion(aggregate_uuid))

    def _tell(self, work: Callable[[], None]) -> None:
        """The caller sees what comes of it, but does not wait for a Placement that hangs."""
        if not self._free.acquire(blocking=False):
            LOG.warning("Placement hangs: a conductor tells it of a change of aggregates")
            return
        context = contextvars.copy_context()
        telling = threading.Thread(target=context.run, args=(self._try, work), name="mirror", daemon=True)
        telling.start()
        telling.join(PATIENCE)
        if telling.is_alive():
            LOG.warning(
                "Placement takes long to learn of a change of aggregates; it is told in the background"
            )

    def _try(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # the database may be gone by now: the change is committed all the same
            LOG.warning("a conductor tells Placement of a change of aggregates, since we can't: %s", error)
        finally:
            self._free.release()
