"""The consoles of guests: what they have printed, and where they can be reached."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from moorage.drivers.contract import DriverError
from moorage.drivers.libvirt.backend import Backend
from moorage.drivers.libvirt.domain import live_xml
from moorage.drivers.parts import ConsoleAddress, ConsoleType

_ANY = {"0.0.0.0", "::", ""}
_OLDER = ".0"
"""What libvirt's log daemon calls the file before the present one, too."""


class Consoles:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def log(self, server_uuid: str, lines: int | None) -> str:
        """At most as much as is kept; characters that are none are replaced."""
        directory = self._backend.directory(server_uuid)
        directory.require()
        most = self._backend.settings.console_log_bytes
        present = _tail(directory.console_log, most)
        older = _tail(_older(directory.console_log), most - len(present)) if len(present) < most else b""
        text = (older + present).decode(errors="replace")
        if lines is None:
            return text
        return "".join(text.splitlines(keepends=True)[-lines:]) if lines > 0 else ""

    def trim_logs(self) -> None:
        """Logs that have grown too large start anew; what was last in them is kept beside them.

        A guest writes at the end of its log, wherever that is; a line that comes between the two steps is
        lost.
        """
        most = self._backend.settings.console_log_bytes
        for server_uuid in self._backend.domains.powers():
            log = self._backend.directory(server_uuid).console_log
            with contextlib.suppress(OSError):
                if log.stat().st_size > most:
                    kept = log.with_name(f".{log.name}.new")
                    kept.write_bytes(_tail(log, most))
                    os.replace(kept, _older(log))
                    os.truncate(log, 0)

    def address(self, server_uuid: str, console_type: ConsoleType) -> ConsoleAddress:
        """As the guest has it now: another one after each start."""
        domain = self._backend.domains.live(server_uuid)
        if console_type is ConsoleType.NOVNC:
            found = live_xml.graphics_address(domain)
        elif console_type is ConsoleType.SERIAL:
            found = live_xml.serial_address(domain)
        else:
            found = None
        if found is None or not domain.get("id"):
            raise DriverError(f"server {server_uuid} has no {console_type.value} console now")
        host, port = found
        outside = self._backend.settings.console_address
        tls = console_type is ConsoleType.SERIAL and live_xml.serial_has_tls(domain)
        return ConsoleAddress(outside if outside and host in _ANY else host, port, tls=tls)


def _older(log: Path) -> Path:
    return log.with_name(f"{log.name}{_OLDER}")


def _tail(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most))
            return file.read(most)
    except FileNotFoundError:
        return b""
