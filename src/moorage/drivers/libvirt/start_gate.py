"""Where guests are made to run: only under a permit, and not even by a call that is delayed right behind it.

libvirtd itself refuses that call: it closes the connection of a client that has not answered it for a while
(`[libvirt] client_timeout`). So whoever has looked at the permit, and is stopped before the call arrives, is
either back within that time, which the permit has to last for, or has no connection to send the call over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import libvirt
from prometheus_client import Counter

from moorage.core.clock import uptime
from moorage.drivers.contract import DriverError, StartNotPermittedError
from moorage.drivers.parts import StartPermit

LOG = logging.getLogger(__name__)
LATE = Counter("moorage_libvirt_late_starts_total", "Guests that ran too late, and were paused at once.")

_UNLIMITED = StartPermit(float("-inf"), float("inf"))


class StartGate:
    def __init__(self, client_timeout: float, clock: Callable[[], float] = uptime) -> None:
        """`client_timeout`: seconds after which libvirtd gives up a client that stands still."""
        self._client_timeout = client_timeout
        self._clock = clock
        self._permit: Callable[[str], StartPermit | None] = lambda _: _UNLIMITED

    def use(self, permit: Callable[[str], StartPermit | None]) -> None:
        """From now on this is asked for permits; before, nobody is asked."""
        self._permit = permit

    def require(self, server_uuid: str) -> StartPermit:
        """Right before a call that makes a guest run, over a connection that is open already."""
        permit = self._permit(server_uuid)
        if permit is None:
            raise StartNotPermittedError(f"server {server_uuid} may not run")
        if permit.until - permit.asked <= self._client_timeout:
            raise DriverError(
                f"a host counts as dead after {permit.until - permit.asked:.0f} s ([compute] "
                f"service_down_time), libvirt's client only after {self._client_timeout:.0f} s ([libvirt] "
                "client_timeout): nobody could make sure that a guest runs once",
                retry_elsewhere=True,
            )
        if self._clock() + self._client_timeout >= permit.until:
            raise StartNotPermittedError(f"server {server_uuid} may not be started any more")
        return permit

    def go_on(self, server_uuid: str, domain: Any) -> None:
        """Have the processors of a guest run that stands still.

        Late: refused by libvirtd. If only our thread was late, or libvirtd itself: it stands still again at
        once, and whoever is told that the server is not this host's removes it.
        """
        if domain.state()[0] != libvirt.VIR_DOMAIN_PAUSED:
            return
        permit = self.require(server_uuid)
        domain.resume()
        if self._clock() >= permit.until:
            LATE.inc()
            LOG.error("server %s was set going too late, and is paused", server_uuid)
            domain.suspend()
            raise StartNotPermittedError(f"server {server_uuid} was started too late")
