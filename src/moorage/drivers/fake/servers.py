"""The servers of a simulated host, kept in a file so that they outlive the agent."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec

from moorage.core import private
from moorage.drivers.contract import ServerSpec


class FakeServer(msgspec.Struct, frozen=True):
    uuid: str
    node_uuid: str
    power: int
    metadata: dict[str, str] = {}
    disk: str = ""
    """Names what is on the disk: it follows the server from host to host, and a rebuild makes a new one."""
    image: str = ""
    rescue_image: str = ""
    """The one that it boots from instead, while it is rescued."""
    interfaces: frozenset[str] = frozenset()
    """The IDs of its ports."""
    ram_mb: int = 0
    crash_dumps: int = 0
    password_hash: str = ""
    sent_with: int | None = None
    """The power state with which it went to another host live; it is shut down here since then."""
    flavor: str = ""
    resize: str = ""
    """The work that gave it another flavor here."""
    before: FakeServer | None = None
    """What it was before that, until it is certain that it stays what it is."""
    spec: ServerSpec | None = None
    """What it was last made from; None if an older release made it."""


class FakeServers:
    """A dictionary that is also a file: reads cost nothing, a write one small transaction.

    A write survives the death of the process, not a power cut: the machine that it stands for would not
    either.
    """

    def __init__(self, path: Path) -> None:
        private.directory(path.parent, (path.name,))
        private.database(path)
        self._lock = threading.Lock()
        self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        for statement in (
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=NORMAL",
            "CREATE TABLE IF NOT EXISTS servers (uuid TEXT PRIMARY KEY, server BLOB NOT NULL) WITHOUT ROWID",
        ):
            self._file.execute(statement)
        rows = self._file.execute("SELECT server FROM servers")
        decoded = (msgspec.msgpack.decode(row[0], type=FakeServer) for row in rows)
        self._servers = {server.uuid: server for server in decoded}
        self._of_node: dict[str, set[str]] = {}
        for server in self._servers.values():
            self._of_node.setdefault(server.node_uuid, set()).add(server.uuid)

    def get(self, uuid: str) -> FakeServer | None:
        return self._servers.get(uuid)

    def on_node(self, node_uuid: str) -> set[str]:
        with self._lock:
            return set(self._of_node.get(node_uuid, ()))

    def all(self) -> Mapping[str, FakeServer]:
        with self._lock:
            return dict(self._servers)

    def put(self, server: FakeServer) -> None:
        encoded = msgspec.msgpack.encode(server)
        with self._lock:
            self._file.execute("INSERT OR REPLACE INTO servers VALUES (?, ?)", (server.uuid, encoded))
            self._servers[server.uuid] = server
            self._of_node.setdefault(server.node_uuid, set()).add(server.uuid)

    def remove(self, uuid: str) -> None:
        with self._lock:
            server = self._servers.pop(uuid, None)
            if server is not None:
                self._file.execute("DELETE FROM servers WHERE uuid = ?", (uuid,))
                self._of_node[server.node_uuid].discard(uuid)

    def close(self) -> None:
        with self._lock:
            self._file.close()
