"""What machines print on their consoles, as somebody else keeps it: Ironic keeps none of it.

Operators have programs for that (conserver, conman), which write a file for each machine. Such a file goes on
from one server to the next, and nobody may see what another's server has printed: so when a machine becomes a
server's, it is written down on the node how long the file is by then.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from moorage.drivers.contract import DriverError
from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.parts import ConsoleLogging, MissingPartError

LOG = logging.getLogger(__name__)

FIELD = "moorage_console"
"""Where a node keeps which file it was, and how long."""
_SERVER = "{server}"
_MOST = 100 * 1024
"""Bytes at the end of a log that are looked at, as everywhere."""


class ConsoleLog:
    def __init__(self, template: str) -> None:
        """A path, in which `{node}` is the UUID of a machine, `{name}` its name, `{server}` its server; empty
        if nobody keeps logs."""
        self._template = template

    def begin(self, record: NodeRecord, server_uuid: str) -> dict[str, Any]:
        """What is to be written down in `instance_info` when a machine becomes a server's."""
        if not self._template or _SERVER in self._template:
            return {}
        try:
            found = self._path(record, server_uuid).stat()
        except FileNotFoundError:
            return {FIELD: {"file": 0, "size": 0}}
        except OSError as error:  # then its output is not shown
            LOG.warning("the console log of node %s can't be looked at: %s", record.uuid, error)
            return {}
        return {FIELD: {"file": found.st_ino, "size": found.st_size}}

    def read(self, record: NodeRecord, server_uuid: str, lines: int | None) -> str:
        """MissingPartError if nobody keeps logs."""
        if not self._template:
            raise MissingPartError(ConsoleLogging)
        try:
            with self._path(record, server_uuid).open("rb") as file:
                found = os.fstat(file.fileno())
                file.seek(max(self._start(record, found), found.st_size - _MOST))
                text = file.read(_MOST).decode(errors="replace")
        except OSError as error:
            raise DriverError(f"the console log of node {record.uuid} can't be read: {error}") from error
        if lines is None:
            return text
        return "".join(text.splitlines(keepends=True)[-lines:]) if lines > 0 else ""

    def _start(self, record: NodeRecord, found: os.stat_result) -> int:
        """Where the server's part begins. A file that was begun anew since then is all its own."""
        if _SERVER in self._template:
            return 0
        said = record.instance_info.get(FIELD)
        if not isinstance(said, dict):
            raise DriverError(f"it is not known where in the log of node {record.uuid} its server begins")
        size = int(said.get("size", 0))
        is_same = said.get("file") == found.st_ino and found.st_size >= size
        return size if is_same else 0

    def _path(self, record: NodeRecord, server_uuid: str) -> Path:
        values = {"{node}": record.uuid, "{name}": record.name or record.uuid, _SERVER: server_uuid}
        path = self._template
        for name, value in values.items():
            path = path.replace(name, value)
        return Path(path)
