"""`/servers/{id}/tags`: words that servers are found by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError
from moorage.compute.servers import labels, lifecycle
from moorage.compute.servers.server import Server
from moorage.compute.servers.states import VmState
from moorage.compute_api.servers import server_schemas
from moorage.compute_api.servers.servers import find, lock
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.reply import Reply, no_content

T = TypeVar("T")
_CHANGEABLE = (VmState.ACTIVE, VmState.PAUSED, VmState.SUSPENDED, VmState.STOPPED)


def index(service: ComputeService, call: Call) -> Reply:
    """List a server's tags."""
    with service.database.read() as connection:
        return Reply(body={"tags": find(connection, call).tags})


def show(service: ComputeService, call: Call) -> Reply:
    """Tell whether a server has a tag."""
    with service.database.read() as connection:
        labels.require_tag(find(connection, call), call.params["tag"])
    return no_content()


def replace(service: ComputeService, call: Call) -> Reply:
    """Replace a server's tags."""
    tags = call.json()["tags"]
    unique = _change(service, call, "update tags", lambda at, server: labels.set_tags(at, server, tags))
    return Reply(body={"tags": unique})


def add(service: ComputeService, call: Call) -> Reply:
    """Add a tag to a server."""
    tag = call.params["tag"]
    problem = server_schemas.TAG.problem(tag)

    def change(connection: Connection, server: Server) -> bool:
        if problem is not None:
            raise ComputeError(
                f"Tag '{tag}' is invalid. It must be a non empty string without characters '/' and ','. "
                f"Validation error message: {problem.message}"
            )
        return labels.add_tag(connection, server, tag)

    if not _change(service, call, "update tag", change):
        return no_content()
    path = f"/servers/{call.params['server_id']}/tags/{tag}"
    return Reply(201, b"", headers=call.location(path))


def delete(service: ComputeService, call: Call) -> Reply:
    """Take a tag from a server."""
    tag = call.params["tag"]
    _change(service, call, "delete tag", lambda at, server: labels.drop_tag(at, server, tag))
    return no_content()


def clear(service: ComputeService, call: Call) -> Reply:
    """Take all tags from a server."""
    _change(service, call, "delete tags", lambda at, server: labels.set_tags(at, server, []))
    return no_content()


def _change(service: ComputeService, call: Call, action: str, change: Callable[[Connection, Server], T]) -> T:
    def work(connection: Connection) -> T:
        server = lock(connection, call)
        lifecycle.require_state(server, action, _CHANGEABLE, None, launched=False)
        return change(connection, server)

    return service.database.transact(work)
