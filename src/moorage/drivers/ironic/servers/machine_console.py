"""The consoles of Ironic's nodes, for as long as Ironic's console of the node is on: a serial line at a TCP
address, or a screen that a container of Ironic's serves by VNC. A node has one of them."""

from __future__ import annotations

from urllib.parse import urlsplit

from moorage.drivers.contract import DriverError
from moorage.drivers.ironic.api.client import ConsoleState, IronicClient
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.api.writer import Writer
from moorage.drivers.ironic.servers.deploying import require_server
from moorage.drivers.parts import ConsoleAddress, ConsoleType

TIMEOUT = 15.0
"""Seconds until a console is on: a user waits for it."""
_TCP = "tcp"
"""What a console of the kind `socat` says; others are web pages of their own."""
_VNC = "vnc"


class SwitchingOnConsole:
    """Asks once, and is done when Ironic says where the console is. On already: nothing happens."""

    def __init__(
        self, server_uuid: str, console_type: ConsoleType, client: IronicClient, writer: Writer
    ) -> None:
        self._server_uuid = server_uuid
        self._type = console_type
        self._client = client
        self._writer = writer
        self._asked = False
        self.address: ConsoleAddress | None = None

    def __call__(self, record: NodeRecord) -> bool:
        require_server(record, self._server_uuid)
        console = self._client.console(record.uuid)
        if console.console_enabled:
            is_screen = self._type is ConsoleType.NOVNC
            self.address = _screen(record, console) if is_screen else _line(console)
            return self.address is not None
        if not self._asked and record.reservation is None:
            self._writer.switch_on_console()
            self._asked = True
        return False


def _line(console: ConsoleState) -> ConsoleAddress:
    url = str((console.console_info or {}).get("url") or "")
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme != _TCP or host is None or port is None:
        raise DriverError(f"its console can't be connected to: {url or 'Ironic does not say where'}")
    return ConsoleAddress(host, port)


def _screen(record: NodeRecord, console: ConsoleState) -> ConsoleAddress | None:
    """What Ironic says is a page of its own proxy. Where that one connects to is told elsewhere, a little
    later: None until then."""
    if (console.console_info or {}).get("type") != _VNC:
        raise DriverError("its console is no screen")
    host, port = (record.driver_internal_info.get(f"vnc_{name}") for name in ("host", "port"))
    return ConsoleAddress(str(host), int(port)) if host and port else None
