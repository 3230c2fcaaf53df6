"""`/servers/{id}/metadata`: what users note down about their servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError
from moorage.compute.quotas.quotas import Limits
from moorage.compute.servers import labels, lifecycle
from moorage.compute.servers.server import Server
from moorage.compute.servers.states import VmState
from moorage.compute_api.endpoint import is_admin
from moorage.compute_api.servers.servers import fetch_limits, find, lock
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.reply import Reply, no_content

T = TypeVar("T")
_CHANGEABLE = (VmState.ACTIVE, VmState.PAUSED, VmState.SUSPENDED, VmState.STOPPED)


def index(service: ComputeService, call: Call) -> Reply:
    """List a server's metadata."""
    with service.database.read() as connection:
        return Reply(body={"metadata": find(connection, call).metadata})


def show(service: ComputeService, call: Call) -> Reply:
    """Show one item of a server's metadata."""
    key = call.params["key"]
    with service.database.read() as connection:
        return Reply(body={"meta": {key: labels.metadata_item(find(connection, call), key)}})


def add(service: ComputeService, call: Call) -> Reply:
    """Add items to a server's metadata."""
    return _set(service, call, replace=False)


def replace(service: ComputeService, call: Call) -> Reply:
    """Replace a server's metadata."""
    return _set(service, call, replace=True)


def _set(service: ComputeService, call: Call, *, replace: bool) -> Reply:
    given = call.json()["metadata"]

    def change(connection: Connection, server: Server) -> dict[str, str]:
        limits = _limits(service, connection, server)
        return labels.set_metadata(connection, server, given, limits=limits, replace=replace)

    fetch_limits(service, call)

    return Reply(body={"metadata": _change(service, call, "update metadata", change)})


def set_item(service: ComputeService, call: Call) -> Reply:
    """Set one item of a server's metadata."""
    item = call.json()["meta"]
    if call.params["key"] not in item:
        raise ComputeError("Request body and URI mismatch")

    def change(connection: Connection, server: Server) -> None:
        limits = _limits(service, connection, server)
        labels.set_metadata(connection, server, item, limits=limits, replace=False)

    fetch_limits(service, call)
    _change(service, call, "update metadata", change)
    return Reply(body={"meta": item})


def delete(service: ComputeService, call: Call) -> Reply:
    """Delete one item of a server's metadata."""

    def change(connection: Connection, server: Server) -> None:
        labels.drop_metadata(connection, server, call.params["key"])

    _change(service, call, "delete metadata", change)
    return no_content()


def _change(service: ComputeService, call: Call, action: str, change: Callable[[Connection, Server], T]) -> T:
    def work(connection: Connection) -> T:
        server = lock(connection, call)
        lifecycle.require_unlocked(server, as_admin=is_admin(call))
        lifecycle.require_state(server, action, _CHANGEABLE, None)
        return change(connection, server)

    return service.database.transact(work)


def _limits(service: ComputeService, connection: Connection, server: Server) -> Limits:
    project, _ = service.limits.in_force(connection, server.project_id, server.user_id)
    return project
