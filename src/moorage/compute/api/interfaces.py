"""`/servers/{id}/os-interface`: the ports of a server, as the network has them now."""

from __future__ import annotations

from typing import Any

from moorage.compute.api.server_networks import told
from moorage.compute.api.servers import find
from moorage.compute.errors import NotFoundError
from moorage.compute.service import ComputeService
from moorage.http.call import Call
from moorage.http.reply import Reply
from moorage.network.contract import Holding, Interface


def index(service: ComputeService, call: Call) -> Reply:
    """List a server's interfaces."""
    shown = [_shown(call, interface) for interface in _interfaces(service, call)]
    return Reply(body={"interfaceAttachments": shown})


def show(service: ComputeService, call: Call) -> Reply:
    """Show one of a server's interfaces."""
    port_id = call.params["port_id"]
    for interface in _interfaces(service, call):
        if interface.port_id == port_id:
            return Reply(body={"interfaceAttachment": _shown(call, interface)})
    raise NotFoundError(f"Port id {port_id} could not be found.")


def _interfaces(service: ComputeService, call: Call) -> list[Interface]:
    with service.database.read() as connection:
        server = find(connection, call)
    with told():
        return service.network.interfaces(Holding.of({"uuid": server.uuid, "request": server.request}))


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
    return {**shown, "tag": interface.tag} if call.version >= (2, 70) else shown
