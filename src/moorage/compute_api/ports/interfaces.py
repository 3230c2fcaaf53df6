"""`/servers/{id}/os-interface`: the ports of a server as the network has them now, one more, one fewer."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError, ConflictError, NotFoundError, UnavailableError
from moorage.compute.ports import interfaces
from moorage.compute.ports.interfaces import AttachmentOutcome
from moorage.compute.servers import lifecycle
from moorage.compute.servers.server import Server
from moorage.compute_api.endpoint import is_admin
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.ports.server_networks import AT_ATTACH, told
from moorage.compute_api.schema_types import Json, closed
from moorage.compute_api.servers.server_schemas import ADDRESS, DEVICE_TAG, UUID, UUID_OR_NULL
from moorage.compute_api.servers.servers import find, lock, origin_of
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, empty
from moorage.http.schema import VersionedSchema
from moorage.network.contract import (
    AgreedNetworks,
    Interface,
    NetworkError,
    NetworkFault,
    Networks,
    Requester,
)

_LOOK_SECONDS = 0.05


# ---------------------------------------------------------------- what may be sent


def _attachment(**more: Json) -> Json:
    address = {
        "type": "array",
        "minItems": 1,
        "maxItems": 1,
        "items": closed({"ip_address": ADDRESS}, ("ip_address",)),
    }
    wanted = closed({"net_id": UUID, "port_id": UUID_OR_NULL, "fixed_ips": address, **more})
    return closed({"interfaceAttachment": wanted})


CREATE = VersionedSchema(
    {Microversion.FIRST: _attachment(), Microversion.TAG_WHEN_ATTACHING: _attachment(tag=DEVICE_TAG)}
)


# ---------------------------------------------------------------- to see them


def index(service: ComputeService, call: Call) -> Reply:
    """List a server's interfaces."""
    shown = [_shown(call, interface) for interface in _interfaces(service, call)]
    return Reply(body={"interfaceAttachments": shown})


def show(service: ComputeService, call: Call) -> Reply:
    """Show one of a server's interfaces."""
    return _show(service, call, call.params["port_id"])


def _show(service: ComputeService, call: Call, port_id: str) -> Reply:
    for interface in _interfaces(service, call):
        if interface.port_id == port_id:
            return Reply(body={"interfaceAttachment": _shown(call, interface)})
    raise NotFoundError(f"Port id {port_id} could not be found.")


def _interfaces(service: ComputeService, call: Call) -> list[Interface]:
    with service.database.read() as connection:
        server = find(connection, call)
    with told():
        return service.network.interfaces(interfaces.server_ports_of(server))


def _shown(call: Call, interface: Interface) -> dict[str, Any]:
    shown = {
        "net_id": interface.network_id,
        "port_id": interface.port_id,
        "mac_addr": interface.mac,
        "port_state": interface.state,
        "fixed_ips": [
            {"subnet_id": subnet_id, "ip_address": address} for subnet_id, address in interface.addresses
        ],
    }
    return {**shown, "tag": interface.tag} if call.version >= Microversion.ATTACHMENT_TAGS_SHOWN else shown


# ---------------------------------------------------------------- one more


def create(service: ComputeService, call: Call) -> Reply:
    """Attach a port to a server, and wait until it is there."""
    asked = call.json().get("interfaceAttachment", {})
    with service.database.read() as connection:
        server = find(connection, call)
    networks = _wanted(asked)
    _require_ready(call, server, interfaces.ATTACH)
    agreed = _agree(service, call, server, networks)
    origin = origin_of(call)

    def attach(connection: Connection) -> int:
        found = lock(connection, call)
        _require_ready(call, found, interfaces.ATTACH)
        return interfaces.attach(connection, found, origin, agreed, asked.get("tag"))

    operation_id = service.database.transact(attach)
    service.wake()
    return _show(service, call, _port(server, _await(service, operation_id)))


def _wanted(asked: Json) -> Networks:
    """As a boot would ask for it."""
    network_id, port_id = asked.get("net_id"), asked.get("port_id")
    address = asked["fixed_ips"][0]["ip_address"] if asked.get("fixed_ips") else None
    if network_id and port_id:
        raise ComputeError("Must not input both network_id and port_id")
    if address and not network_id:
        raise ComputeError("Must input network_id when request IP address")
    if not network_id and not port_id:
        return "only"
    return [{"uuid": network_id, "port": port_id, "fixed_ip": address}]


def _require_ready(call: Call, server: Server, action: str) -> None:
    lifecycle.require_unlocked(server, as_admin=is_admin(call))
    interfaces.require_ready(server, action)


def _agree(service: ComputeService, call: Call, server: Server, networks: Networks) -> AgreedNetworks:
    """With the caller's token, for the server's project."""
    have = interfaces.server_ports_of(server).ports
    requester = Requester(server.project_id, call.caller.token)
    with told(AT_ATTACH):
        return service.network.agree(requester, networks, [], 1, have)


def _await(service: ComputeService, operation_id: int) -> AttachmentOutcome:
    """A conductor does it; whoever asked has to be told of the port."""
    deadline = time.monotonic() + service.settings.attach_timeout
    while time.monotonic() < deadline:
        with service.database.read() as connection:
            outcome = interfaces.outcome(connection, operation_id)
        if outcome is not None:
            return outcome
        time.sleep(_LOOK_SECONDS)
    raise UnavailableError("The interface is not attached yet; the server's actions will tell how it ends.")


def _port(server: Server, outcome: AttachmentOutcome) -> str:
    if outcome.cancelled:
        raise ConflictError(f"Instance {server.uuid} was deleted or reset before the interface was attached.")
    if outcome.error is None and outcome.port_id is not None:
        return outcome.port_id
    if outcome.fault is None:
        raise HttpError(500, f"Failed to attach network adapter device to {server.uuid}")
    with told(AT_ATTACH):
        raise NetworkError(outcome.error or "", fault=NetworkFault(outcome.fault))


# ---------------------------------------------------------------- one fewer


def delete(service: ComputeService, call: Call) -> Reply:
    """Detach a port from a server: soon."""
    port_id, origin = call.params["port_id"], origin_of(call)

    def detach(connection: Connection) -> None:
        server = lock(connection, call)
        _require_ready(call, server, interfaces.DETACH)
        interfaces.detach(connection, server, origin, port_id)

    service.database.transact(detach)
    service.wake()
    return empty(202)
