"""Machines that are held for servers which are not there: asked about, and swept if nobody needs them.

A call that was delayed until its lease had ended leaves such, and so does a host that died in the middle of
one. What is there rightly is asked about, too, but seldom: only conductors know the difference.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable

from prometheus_client import Counter

from moorage.bus.contract import HeldMachine
from moorage.drivers.contract import DriverClosedError, DriverError
from moorage.drivers.shared_nodes import Held, SharedNodes

LOG = logging.getLogger(__name__)

SWEPT = Counter(
    "moorage_agent_swept_total", "Machines that were held for servers which are not there.", ["outcome"]
)
_MOST_TOGETHER = 2_000


class Sweeping:
    def __init__(
        self,
        driver: SharedNodes,
        busy: Callable[[], Collection[str]],
        grace: float,
        again: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """A machine is asked about once it has been held for `grace` seconds, then every `again` seconds."""
        self._driver = driver
        self._busy = busy
        self._grace = grace
        self._again = again
        self._clock = clock
        self._lock = threading.Lock()
        self._due: dict[Held, float] = {}
        """When each is to be asked about."""
        self._at_work: set[Held] = set()

    def look(self) -> None:
        """See what is held now. What something is being done to begins anew after that."""
        busy, found, now = self._busy(), self._driver.held(), self._clock()
        with self._lock:
            self._due = {
                held: self._due.get(held, now + self._grace) for held in found if held.server_uuid not in busy
            }

    def held_machines(self) -> list[HeldMachine]:
        """What is to be asked now; it is asked again if no answer comes, or another one."""
        now = self._clock()
        with self._lock:
            due = [held for held, when in self._due.items() if when <= now][:_MOST_TOGETHER]
            for held in due:
                self._due[held] = now + self._again
        return [HeldMachine(held.server_uuid, held.node_uuid) for held in due]

    def take(self, told: Iterable[HeldMachine]) -> list[Held]:
        """Those of the machines that nobody needs that are still held, and are not being swept already."""
        named = {Held(one.server_uuid, one.node_uuid) for one in told}
        busy = self._busy()
        with self._lock:
            found = [one for one in named & self._due.keys() - self._at_work if one.server_uuid not in busy]
            self._at_work.update(found)
        return found

    def sweep(self, held: Held) -> None:
        """The driver looks itself before it does anything. What fails is asked about again."""
        try:
            if self._driver.sweep(held):
                SWEPT.labels("swept").inc()
                LOG.warning("a machine was held for server %s, which is not there: swept", held.server_uuid)
            else:
                self._ask_again(held)
        except DriverClosedError:
            LOG.info("a machine that is held for server %s is swept after the next start", held.server_uuid)
        except DriverError as error:
            SWEPT.labels("failed").inc()
            LOG.warning("a machine that is held for server %s can't be swept: %s", held.server_uuid, error)
            self._ask_again(held)
        finally:
            with self._lock:
                self._at_work.discard(held)

    def _ask_again(self, held: Held) -> None:
        """Unless it is gone: it may be another host's to sweep, or ours a little later."""
        with self._lock:
            if held in self._due:
                self._due[held] = self._clock() + self._grace
