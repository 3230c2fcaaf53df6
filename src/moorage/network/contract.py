"""Networks, in two phases: ports are got or made before a host is known, and bound once it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec


class NetworkError(Exception):
    """A sentence for the user; `retry_elsewhere` says whether another host may do."""

    def __init__(self, message: str, *, retry_elsewhere: bool = False) -> None:
        super().__init__(message)
        self.retry_elsewhere = retry_elsewhere


class PortRecord(msgspec.Struct):
    """A port of a server, as the control plane remembers it."""

    id: str
    network_id: str
    network_name: str
    ours: bool
    """Made by us, so deleted with the server; a port that the user brought is only unbound."""
    mac: str = ""
    addresses: list[str] = []
    needs: dict[str, Any] = {}
    """Resource request, segments, physical network: what scheduling has to know."""


class Binding(msgspec.Struct, frozen=True):
    """A server that wants its ports bound to a host."""

    server_uuid: str
    ports: list[PortRecord]
    host: str
    cell: str


class Network(Protocol):
    def prepare(self, server: dict[str, Any], asked: Any) -> list[PortRecord]:
        """Phase 1, before scheduling. Asked again after a crash it finds what it made the first time."""

    def bind(self, bindings: Sequence[Binding]) -> list[list[PortRecord] | NetworkError]:
        """Phase 2, after scheduling: each on its own merits, answered in their order."""

    def unbind(self, server_uuid: str, ports: list[PortRecord]) -> list[PortRecord]:
        """Undo phase 2: another host will be tried."""

    def release(self, ports: Mapping[str, list[PortRecord]]) -> None:
        """These servers are gone (ports by server): delete ours, unbind the user's."""
