"""`/servers/{id}/remote-consoles`, and the actions that it replaced: a URL that shows a server's console."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import msgspec
from sqlalchemy.engine import Connection

from moorage.bus.contract import QuestionKind
from moorage.compute.consoles import tokens
from moorage.compute.errors import ComputeError
from moorage.compute.servers.server import Server
from moorage.compute.servers.server_errors import InvalidState
from moorage.compute.servers.states import PowerNumber, TaskState
from moorage.compute_api.consoles.asking import ask, require_host
from moorage.compute_api.servers.servers import find, lock
from moorage.compute_api.service import ComputeService
from moorage.drivers.parts import ConsoleAddress, ConsoleType
from moorage.http.call import Call
from moorage.http.reply import Reply

POLICY = "os_compute_api:os-remote-consoles"
_TYPES = {"vnc": ConsoleType.NOVNC, "serial": ConsoleType.SERIAL}
"""What this cloud has, by protocol."""
_NO_CONSOLE_DURING = (TaskState.DELETING, TaskState.MIGRATING)


def create(service: ComputeService, call: Call) -> Reply:
    """Make a URL that shows a server's console for a while."""
    asked = call.json()["remote_console"]
    url = _open(service, call, asked["protocol"], asked["type"])
    return Reply(body={"remote_console": {**asked, "url": url}})


def open_vnc(service: ComputeService, call: Call, argument: Any) -> Reply:
    return _old_form(service, call, "vnc", argument["type"])


def open_serial(service: ComputeService, call: Call, argument: Any) -> Reply:
    return _old_form(service, call, "serial", argument["type"])


def open_spice(service: ComputeService, call: Call, argument: Any) -> Reply:
    return _old_form(service, call, "spice", argument["type"])


def _old_form(service: ComputeService, call: Call, protocol: str, asked_type: str) -> Reply:
    url = _open(service, call, protocol, asked_type)
    return Reply(body={"console": {"type": asked_type, "url": url}})


def _open(service: ComputeService, call: Call, protocol: str, asked_type: str) -> str:
    with service.database.read() as connection:
        server = find(connection, call)
    require_host(server)
    wanted = _wanted(protocol, asked_type)
    if server.task_state in _NO_CONSOLE_DURING:
        raise InvalidState(f"get_{protocol}_console", server.uuid, "task_state", server.task_state)
    answer = ask(service, call, server, QuestionKind.CONSOLE, {"type": wanted})
    if answer.refusal is not None:
        if server.power_state != PowerNumber.RUNNING:
            raise InvalidState(f"get_{protocol}_console", server.uuid, "vm_state", server.vm_state)
        raise _unavailable(asked_type)
    address = msgspec.convert(answer.facts, ConsoleAddress)
    token = service.database.transact(partial(_issue, service, call, server, wanted, address))
    return _url(service.settings.console_url, wanted, token)


def _wanted(protocol: str, asked_type: str) -> ConsoleType:
    if protocol == "rdp":
        raise _unavailable(protocol)
    wanted = _TYPES.get(protocol)
    if wanted is None:
        raise _unavailable(asked_type)
    if asked_type != wanted:
        raise ComputeError(f"Invalid console type {asked_type}")
    return wanted


def _unavailable(asked_type: str) -> ComputeError:
    return ComputeError(f"Unavailable console type {asked_type}.")


def _issue(
    service: ComputeService,
    call: Call,
    asked_about: Server,
    wanted: ConsoleType,
    address: ConsoleAddress,
    connection: Connection,
) -> str:
    server = lock(connection, call)
    if (server.host, server.node_uuid) != (asked_about.host, asked_about.node_uuid):
        raise InvalidState("get_console", server.uuid, "task_state", server.task_state)
    settings = service.settings
    return tokens.issue(
        connection, server, wanted, address, base_url=settings.console_url, seconds=settings.console_token_ttl
    )


def _url(base: str, wanted: ConsoleType, token: str) -> str:
    """As the reference's: a page that takes the path of its WebSocket, or the WebSocket itself."""
    parts = urlsplit(base)
    path = parts.path.rstrip("/")
    if wanted is ConsoleType.SERIAL:
        scheme = "wss" if parts.scheme == "https" else "ws"
        return urlunsplit((scheme, parts.netloc, f"{path}/", urlencode({"token": token}), ""))
    socket = f"{path.lstrip('/')}?token={token}"
    return urlunsplit((parts.scheme, parts.netloc, f"{path}/vnc_auto.html", urlencode({"path": socket}), ""))
