"""Guests that run on though libvirt takes them for off: it can't read what it has written down about them.

So whenever we meet a libvirtd anew, the processes are held against what it says. A guest that it has
forgotten counts as running, and nothing starts it twice; whatever switches it off ends its process. What
libvirtd could not read is mended, so that it knows the guest after its next restart.
"""

from __future__ import annotations

import logging
import os
import select
import signal
from collections.abc import Collection, Iterator
from pathlib import Path

from prometheus_client import Counter, Gauge

from moorage.drivers.contract import DriverError
from moorage.drivers.libvirt.status_files import StatusFiles

LOG = logging.getLogger(__name__)
FOUND = Counter("moorage_libvirt_forgotten_guests_total", "Guests that run, and that libvirtd takes for off.")
NOW = Gauge(
    "moorage_libvirt_guests_forgotten",
    "Guests that run now, and that libvirtd takes for off.",
    multiprocess_mode="livesum",
)

_PATIENCE = ((signal.SIGTERM, 10_000), (signal.SIGKILL, 30_000))
"""What ends a QEMU, and for how many milliseconds it may take: what libvirt itself does."""


class ForgottenGuestError(DriverError):
    def __init__(self, server_uuid: str, pid: int) -> None:
        super().__init__(
            f"libvirtd has forgotten server {server_uuid}, whose process {pid} runs: restart libvirtd, which "
            "guests do not notice; if it does not know the guest then, stop the server and start it again"
        )


class ForgottenGuests:
    def __init__(self, files: StatusFiles) -> None:
        self._files = files
        self._found: dict[str, int] = {}

    def look(self, off: Collection[str]) -> None:
        """`off` are the servers here that a libvirtd whom we have just met takes for off.

        Later it forgets none: it only does when it starts.
        """
        running = dict(self._guests()) if off else {}
        known, self._found = self._found, {uuid: running[uuid] for uuid in off if uuid in running}
        for server_uuid, pid in self._found.items():
            if known.get(server_uuid) != pid:
                FOUND.inc()
                LOG.error("%s", ForgottenGuestError(server_uuid, pid))
        NOW.set(len(self._found))
        self._files.mend()

    def pid(self, server_uuid: str) -> int | None:
        """Of the guest's process, if libvirtd has forgotten it."""
        pid = self._found.get(server_uuid)
        if pid is not None and _guest_of(pid) != server_uuid:
            self._found.pop(server_uuid, None)
            NOW.set(len(self._found))
            return None
        return pid

    def require_known(self, server_uuid: str) -> None:
        pid = self.pid(server_uuid)
        if pid is not None:
            raise ForgottenGuestError(server_uuid, pid)

    def end(self, server_uuid: str, name: str) -> None:
        """Now, as libvirt would; not forgotten, or gone already: nothing happens.

        Late: it is the process that was found then, or none.
        """
        pid = self.pid(server_uuid)
        if pid is None:
            return
        LOG.warning("process %d of server %s is ended without libvirtd, which has forgotten it", pid, name)
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            if _guest_of(pid) == server_uuid:
                _end(process, pid)
        finally:
            os.close(process)
        self._files.forget(name)
        self.pid(server_uuid)

    def _guests(self) -> Iterator[tuple[str, int]]:
        """UUIDs and processes of the guests on this host, whoever's: where there is more than one libvirtd on
        a machine, each has processes of its own."""
        daemon = self._files.daemon()
        space = None if daemon is None else _space(daemon)
        for directory in Path("/proc").glob("[0-9]*"):
            pid = int(directory.name)
            server_uuid = _guest_of(pid)
            if server_uuid and space in (None, _space(pid)):
                yield server_uuid, pid


def _guest_of(pid: int) -> str:
    """The UUID of the guest that a process is; empty if it is none, or dead."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    return words[words.index("-uuid") + 1] if "-uuid" in words[:-1] else ""


def _space(pid: int) -> str:
    """In which processes are numbered together."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def _end(process: int, pid: int) -> None:
    waiting = select.poll()
    waiting.register(process, select.POLLIN)
    for how, milliseconds in _PATIENCE:
        try:
            signal.pidfd_send_signal(process, how)
        except ProcessLookupError:
            return
        if waiting.poll(milliseconds):
            return
    raise DriverError(f"process {pid} does not end")
