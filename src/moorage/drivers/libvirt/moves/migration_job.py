"""A migration that libvirt is at: begun, watched, hurried, called off.

libvirtd does the work, and goes on with it when its caller dies. So who begins a migration and who watches it
need not be the same process.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import libvirt

from moorage.drivers.contract import DriverError, StartNotPermittedError
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.connection import KEEPALIVE
from moorage.drivers.libvirt.moves.settings import FORCE_COMPLETE, MoveSettings

LOG = logging.getLogger(__name__)

_GIB = 1 << 30
_FIRST_DOWNTIME = 100
_PAUSED_ON_ITS_WAY = (libvirt.VIR_DOMAIN_PAUSED_POSTCOPY,)
_LOST = (libvirt.VIR_DOMAIN_PAUSED_POSTCOPY_FAILED,)


class Whereabouts(StrEnum):
    HERE = "here"
    MOVING = "moving"
    GONE = "gone"
    LOST = "lost"
    """Its destination failed while a part of its memory was there, and a part here."""


def look(backend: Backend, server_uuid: str) -> Whereabouts:
    """A domain that has moved is undefined here, which nothing else does as long as the server is ours."""

    def see(domain: Any) -> Whereabouts:
        state, reason = domain.state()
        if state == libvirt.VIR_DOMAIN_SHUTOFF:
            gone = reason == libvirt.VIR_DOMAIN_SHUTOFF_MIGRATED
            return Whereabouts.GONE if gone else Whereabouts.HERE
        if state == libvirt.VIR_DOMAIN_PAUSED and reason in _LOST:
            return Whereabouts.LOST
        if state == libvirt.VIR_DOMAIN_PAUSED and reason in _PAUSED_ON_ITS_WAY:
            return Whereabouts.MOVING
        stats = domain.jobStats()
        leaving = stats.get("operation") == libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT
        at_work = stats.get("type", libvirt.VIR_DOMAIN_JOB_NONE) != libvirt.VIR_DOMAIN_JOB_NONE
        return Whereabouts.MOVING if leaving and at_work else Whereabouts.HERE

    return backend.domains.if_there(server_uuid, see) or Whereabouts.GONE


class Sending:
    """The call that moves a guest, in a thread and over a connection of its own.

    Libvirt serves only some calls of a connection at once: those who look after migrations must not wait for
    the migrations.
    """

    def __init__(
        self,
        uri: str,
        server_uuid: str,
        destination: str,
        permitted: Callable[[], object],
        parameters: Mapping[str, Any],
        flags: int,
    ) -> None:
        """`permitted` raises if the guest may not be set going, at whatever end. A late call is refused by
        libvirtd, or finds no guest here, or no destination that expects it (see `LiveMoves._depart`)."""
        self.error: Exception | None = None
        self._permitted = permitted
        self._uri = uri
        self._server_uuid = server_uuid
        self._destination = destination
        self._thread = threading.Thread(
            target=self._run, args=(dict(parameters), flags), name=f"migrate-{server_uuid[:8]}", daemon=True
        )
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self, parameters: dict[str, Any], flags: int) -> None:
        connection: Any = None
        try:
            connection = libvirt.open(self._uri)
            connection.setKeepAlive(*KEEPALIVE)
            domain = connection.lookupByUUIDString(self._server_uuid)
            self._permitted()
            domain.migrateToURI3(self._destination, parameters, flags)
        except (libvirt.libvirtError, DriverError, StartNotPermittedError) as error:
            self.error = error
        finally:
            if connection is not None:
                with contextlib.suppress(libvirt.libvirtError):
                    connection.close()


class MigrationJob:
    """What a migration that is under way is told, and says."""

    def __init__(self, backend: Backend, server_uuid: str) -> None:
        self.percent = 0
        self._backend = backend
        self._server_uuid = server_uuid
        self._settings: MoveSettings = backend.settings.moves
        self._began = time.monotonic()
        self._step = 0
        self._is_hurried = False
        self._is_late = False

    def look_after(self) -> None:
        """See how far it is, and let the guest stand still for longer the longer it takes."""
        stats = self._on(lambda domain: domain.jobStats())
        total, remaining = int(stats.get("data_total", 0)), int(stats.get("data_remaining", 0))
        if total:
            self.percent = max(self.percent, min(99, 100 * (total - remaining) // total))
        size = max(1.0, total / _GIB)
        elapsed = time.monotonic() - self._began
        self._allow_downtime(elapsed, size)
        limit = self._settings.completion_timeout * size
        if limit and elapsed > limit and not self._is_late:
            self._is_late = True
            self._end_late_one(elapsed)

    def abort(self) -> None:
        self._try("called off", lambda domain: domain.abortJob())

    def hurry(self) -> None:
        """Once is enough. Without post-copy the guest holds still until libvirt lets it go on, wherever."""
        if self._is_hurried:
            return
        self._is_hurried = True
        switched = self._settings.post_copy and self._try(
            "switched to post-copy", lambda domain: domain.migrateStartPostCopy(0)
        )
        if not switched:
            self._try("hurried", _hold_still)

    def _allow_downtime(self, elapsed: float, size: float) -> None:
        steps, most = self._settings.downtime_steps, self._settings.downtime
        due = min(steps, int(elapsed // (self._settings.downtime_delay * size)))
        if due > self._step:
            self._step = due
            first = min(_FIRST_DOWNTIME, most)
            downtime = int(first * (most / first) ** (due / steps))
            self._try("slowed", lambda domain: domain.migrateSetMaxDowntime(downtime, 0))

    def _end_late_one(self, elapsed: float) -> None:
        forced = self._settings.timeout_action == FORCE_COMPLETE
        LOG.warning(
            "the live migration of server %s has taken %d s: %s",
            *(self._server_uuid, elapsed, "it has to end now" if forced else "it is called off"),
        )
        if forced:
            self.hurry()
        else:
            self.abort()

    def _try(self, what: str, call: Any) -> bool:
        """It may have ended meanwhile."""
        try:
            self._on(call)
        except DriverError as error:
            LOG.info("the live migration of server %s can't be %s: %s", self._server_uuid, what, error)
            return False
        return True

    def _on(self, call: Any) -> Any:
        return self._backend.domains.on(self._server_uuid, "look after the migration of", call)


def _hold_still(domain: Any) -> None:
    if domain.state()[0] != libvirt.VIR_DOMAIN_PAUSED:
        domain.suspend()
