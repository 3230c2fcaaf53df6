"""Shelving: servers that nobody needs for a while are put into images, and give their hosts' room back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.aggregates.zones import Zones
from moorage.compute.errors import ConflictError
from moorage.compute.imaging import discarding, snapshots
from moorage.compute.imaging.discarding import SHELVED_IMAGE
from moorage.compute.moves import destinations
from moorage.compute.moves.destinations import Destination
from moorage.compute.servers import servers
from moorage.compute.servers.actions import Origin, start
from moorage.compute.servers.lifecycle import ask_host, require_state
from moorage.compute.servers.server import Server
from moorage.compute.servers.states import TaskState, VmState
from moorage.ledger import queue

DROPPED_GENERATION = "dropped_generation"
"""Where the request of an offloaded server keeps the generation at which its claim was dropped."""


def shelve(connection: Connection, server: Server, origin: Origin, image_id: str) -> None:
    require_state(server, "shelve", snapshots.SNAPPABLE)
    snapshots.begin(connection, server, origin, "shelve", "shelve", TaskState.SHELVING, image_id)


def offload(connection: Connection, server: Server, origin: Origin) -> None:
    """Now, whenever it was to be."""
    require_state(server, "shelveOffload", (VmState.SHELVED,))
    discarding.cancel_all_else(connection, server)
    action_id = start(connection, server.id, "shelveOffload", origin)
    servers.set_state(connection, server.id, task_state=TaskState.SHELVING_OFFLOADING)
    queue.enqueue(connection, server.id, "shelve_offload", {}, action_id)


@dataclass(frozen=True)
class Unshelving:
    """Where a server shall run again."""

    host: str | None = None
    zone: str | None = None
    """None frees a server of the one that it was asked for."""
    keeps_zone: bool = True
    """Nothing is said of zones."""

    @property
    def is_anywhere(self) -> bool:
        return self.host is None and self.keeps_zone


def unshelve(
    connection: Connection, server: Server, origin: Origin, wanted: Unshelving, zones: Zones
) -> None:
    require_state(server, "unshelve", (VmState.SHELVED, VmState.SHELVED_OFFLOADED))
    if server.vm_state == VmState.SHELVED:
        _require_anywhere(server, wanted)
        discarding.cancel_all_else(connection, server)
        ask_host(connection, server, origin, "unshelve_here", TaskState.UNSHELVING, action="unshelve")
        return
    zone = server.requested_zone if wanted.keeps_zone else wanted.zone
    _require_place(connection, wanted, zone, zones)
    request: dict[str, Any] = {**server.request, "host": wanted.host, "node": None, "forced": False}
    action_id = start(connection, server.id, "unshelve", origin)
    servers.set_state(
        connection, server.id, task_state=TaskState.UNSHELVING, requested_zone=zone, request=request
    )
    data = {"image_id": request[SHELVED_IMAGE]["id"], "dropped": request.get(DROPPED_GENERATION, 0)}
    queue.enqueue(connection, server.id, "unshelve", data, action_id)


def _require_anywhere(server: Server, wanted: Unshelving) -> None:
    if not wanted.is_anywhere:
        raise ConflictError(
            f'Specifying an availability zone or a host when unshelving server "{server.uuid}" with status '
            f'"{server.vm_state}" is not supported. The server status must be SHELVED_OFFLOADED.'
        )


def _require_place(connection: Connection, wanted: Unshelving, zone: str | None, zones: Zones) -> None:
    """A zone that it was asked for before is not looked at again: no host there is an answer, too."""
    destinations.check(connection, Destination(wanted.zone, wanted.host), zones)
    host = wanted.host
    if host is not None and zone is not None and zones.named.get(host, zones.default) != zone:
        raise ConflictError(f'Host "{host}" is not in the availability zone "{zone}".')
