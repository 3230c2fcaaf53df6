"""The serial consoles of Ironic's nodes: a TCP address, for as long as Ironic's console of the node is on."""

from __future__ import annotations

from urllib.parse import urlsplit

from moorage.drivers.contract import DriverError
from moorage.drivers.ironic.api.client import IronicClient
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.api.writer import Writer
from moorage.drivers.ironic.servers.deploying import require_server
from moorage.drivers.parts import ConsoleAddress

TIMEOUT = 15.0
"""Seconds until a console is on: a user waits for it."""
_TCP = "tcp"
"""What a console of the kind `socat` says; others are web pages of their own."""


class SwitchingOnConsole:
    """Asks once, and is done when Ironic says where the console is. On already: nothing happens."""

    def __init__(self, server_uuid: str, client: IronicClient, writer: Writer) -> None:
        self._server_uuid = server_uuid
        self._client = client
        self._writer = writer
        self._asked = False
        self.address: ConsoleAddress | None = None

    def __call__(self, record: NodeRecord) -> bool:
        require_server(record, self._server_uuid)
        console = self._client.console(record.uuid)
        if console.console_enabled:
            self.address = _address(str((console.console_info or {}).get("url") or ""))
            return True
        if not self._asked and record.reservation is None:
            self._writer.switch_on_console()
            self._asked = True
        return False


def _address(url: str) -> ConsoleAddress:
    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme != _TCP or host is None or port is None:
        raise DriverError(f"its console can't be connected to: {url or 'Ironic does not say where'}")
    return ConsoleAddress(host, port)
