"""What libvirt tells of guests by itself: that one has shut itself down, crashed, or gone on."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

import libvirt

from moorage.drivers.contract import CRASHED, PAUSED, RUNNING, SHUT_DOWN, SUSPENDED
from moorage.drivers.libvirt.backend import Backend

LOG = logging.getLogger(__name__)

_POWER = {
    libvirt.VIR_DOMAIN_EVENT_STARTED: RUNNING,
    libvirt.VIR_DOMAIN_EVENT_RESUMED: RUNNING,
    libvirt.VIR_DOMAIN_EVENT_SUSPENDED: PAUSED,
    libvirt.VIR_DOMAIN_EVENT_STOPPED: SHUT_DOWN,
    libvirt.VIR_DOMAIN_EVENT_CRASHED: CRASHED,
    libvirt.VIR_DOMAIN_EVENT_PMSUSPENDED: SUSPENDED,
}
"""What is defined, undefined or about to shut down has no other power state yet."""


class LifecycleEvents:
    """Whoever watches is told in a thread of its own: libvirt's must not wait for anybody."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._told: queue.SimpleQueue[tuple[str, int] | None] = queue.SimpleQueue()
        self._watchers: list[Callable[[str, int], None]] = []
        self._thread: threading.Thread | None = None

    def tell(self, changed: Callable[[str, int], None]) -> None:
        self._watchers.append(changed)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="libvirt-watch", daemon=True)
            self._thread.start()
            self._backend.domains.connection.on_lifecycle(self._on_event)

    def close(self) -> None:
        self._told.put(None)

    def _on_event(self, _: Any, domain: Any, event: int, detail: int) -> None:
        power = _POWER.get(event)
        if event == libvirt.VIR_DOMAIN_EVENT_STOPPED and detail == libvirt.VIR_DOMAIN_EVENT_STOPPED_SAVED:
            power = SUSPENDED
        if power is not None:
            self._told.put((domain.UUIDString(), power))

    def _run(self) -> None:
        while (told := self._told.get()) is not None:
            server_uuid, power = told
            if not self._backend.directory(server_uuid).path.exists():
                continue  # somebody else's
            for changed in self._watchers:
                try:
                    changed(server_uuid, power)
                except Exception:
                    LOG.exception("who watches server %s has failed", server_uuid)
