"""Domains that libvirt shows as just being started, for ever, and that no call can end.

A libvirtd that is killed right before it starts a QEMU has written down that somebody starts the domain. The
next one believes it (seen with 9.0): there is no process, nobody will ever start one, and every call waits
for whoever does. What was written down is put aside, so that it is not believed once more: when libvirtd is
restarted, the domain is off, and can be used or removed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from pathlib import Path
from typing import Any

import libvirt
from prometheus_client import Counter

from moorage.drivers.contract import DriverError

LOG = logging.getLogger(__name__)
FOUND = Counter(
    "moorage_libvirt_stuck_starts_total", "Domains that libvirtd takes for being started, for ever."
)

STARTING = (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_STARTING_UP)
_SUFFIX = ".moorage-stuck"
"""libvirtd reads only what ends in `.xml`."""
_NO_PROCESS = re.compile(r"<domstatus\b[^>]*\bpid='0'")


class StuckStartError(DriverError):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"libvirtd was killed when it was about to start domain {name}, and takes it for being started "
            "ever since: restart libvirtd, which other guests do not notice",
            retry_elsewhere=True,
        )


class StuckStarts:
    def __init__(self, state_path: Path) -> None:
        """`state_path` is where libvirtd keeps what runs; if it is not seen here, none is found."""
        self._path = state_path

    def includes(self, domain: Any) -> bool:
        """Whether nobody starts a domain that is shown as being started: this libvirtd is younger than what
        is written down about that, in which there is no process."""
        if tuple(domain.state()) != STARTING:
            return False
        name = str(domain.name())
        try:
            daemon = self._daemon_since()
            aside = self._path / f"{name}{_SUFFIX}"
            if aside.exists() and aside.stat().st_mtime_ns == daemon:
                return True
            status = self._path / f"{name}.xml"
            if status.stat().st_mtime_ns >= daemon or not _NO_PROCESS.search(status.read_text()):
                return False
            os.utime(status, ns=(daemon, daemon))
            os.replace(status, aside)
        except OSError:
            return False
        FOUND.inc()
        LOG.error("%s", StuckStartError(name))
        return True

    def over(self) -> list[str]:
        """Names of domains that were stuck before libvirtd was restarted."""
        try:
            daemon = self._daemon_since()
            found = list(self._path.glob(f"*{_SUFFIX}"))
            return [path.name.removesuffix(_SUFFIX) for path in found if path.stat().st_mtime_ns != daemon]
        except OSError:
            return []

    def forget(self, name: str) -> None:
        with contextlib.suppress(OSError):
            (self._path / f"{name}{_SUFFIX}").unlink(missing_ok=True)

    def _daemon_since(self) -> int:
        """When the libvirtd of now took over: it writes that file, and holds it."""
        return (self._path / "driver.pid").stat().st_mtime_ns
