"""The password of a server: the action that changes it, and what a guest has left of its first one."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from moorage.bus.contract import QuestionKind, Refusal
from moorage.compute.errors import ConflictError
from moorage.compute.servers import actions, lifecycle
from moorage.compute.servers import servers as domain
from moorage.compute.servers.actions import Event
from moorage.compute.servers.guest_password import ENCRYPTED_PASSWORD
from moorage.compute.servers.server import Server
from moorage.compute.servers.states import VmState
from moorage.compute_api.consoles import asking
from moorage.compute_api.endpoint import is_admin
from moorage.compute_api.servers.servers import find, lock, origin_of
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, empty, no_content

_ACTION = "changePassword"
_REASONS = {Refusal.NOT_RUNNING: "instance {} is not running", Refusal.FAILED: "error setting admin password"}


def change(service: ComputeService, call: Call, argument: Any) -> Reply:
    """Ask the host, and wait for it: a password is nowhere written down, so nobody could go on with it."""
    with service.database.read() as connection:
        server = find(connection, call)
    lifecycle.require_unlocked(server, as_admin=is_admin(call))
    lifecycle.require_state(server, _ACTION, (VmState.ACTIVE,))
    error: str | None = "it was not changed"
    try:
        error = _ask(service, call, server, argument["adminPass"])
    except HttpError as refusal:
        if refusal.status == 501:
            raise HttpError(501, "Unable to set password on instance") from refusal
        raise
    finally:
        _record(service, call, server, error)
    if error is not None:
        raise ConflictError(f"Failed to set admin password on {server.uuid} because {error}")
    return empty(202)


def _ask(service: ComputeService, call: Call, server: Server, password: str) -> str | None:
    """Why it was not changed, if it was not."""
    answer = asking.ask(service, call, server, QuestionKind.CHANGE_PASSWORD, {"password": password})
    if answer.refusal is None:
        return None
    return _REASONS.get(answer.refusal, _REASONS[Refusal.FAILED]).format(server.uuid)


def _record(service: ComputeService, call: Call, server: Server, error: str | None) -> None:
    event = Event(None, "compute_set_admin_password", server.host, error)
    origin = origin_of(call)
    service.database.transact(
        lambda connection: actions.record(connection, server.id, _ACTION, origin, event)
    )


def show(service: ComputeService, call: Call) -> Reply:
    """Show the encrypted password that a server's guest has told."""
    with service.database.read() as connection:
        server = find(connection, call)
    return Reply(body={"password": server.request.get(ENCRYPTED_PASSWORD) or ""})


def clear(service: ComputeService, call: Call) -> Reply:
    """Forget the encrypted password of a server; in its guest nothing changes."""

    def forget(connection: Connection) -> None:
        server = lock(connection, call)
        if ENCRYPTED_PASSWORD in server.request:
            request = {name: value for name, value in server.request.items() if name != ENCRYPTED_PASSWORD}
            domain.update(connection, server.id, request=request)

    service.database.transact(forget)
    return no_content()
