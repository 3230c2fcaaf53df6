"""The actions on a server's floating addresses, until 2.43: Neutron has the addresses, and is asked."""

from __future__ import annotations

from typing import Any

from moorage.compute.errors import ComputeError
from moorage.compute.ports import changed_ports, interfaces
from moorage.compute_api.ports.server_networks import AT_ATTACH, requester_of, told
from moorage.compute_api.servers.servers import find
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.reply import Reply, empty
from moorage.network.contract import FloatingChange, ServerPorts


def add(service: ComputeService, call: Call, argument: Any) -> Reply:
    """Conductors look at the server's ports again, and at those of the one that the address led to."""
    holding = _holding(service, call)
    fixed = _fixed(holding, argument)
    with told(AT_ATTACH):
        change = FloatingChange(argument["address"], fixed)
        before = service.network.lead_floating(requester_of(call), holding, change)
    _look_again(service, {holding.server_uuid, before} - {None})
    return empty(202)


def remove(service: ComputeService, call: Call, argument: Any) -> Reply:
    holding = _holding(service, call)
    with told(AT_ATTACH):
        service.network.take_floating(requester_of(call), holding, argument["address"])
    _look_again(service, {holding.server_uuid})
    return empty(202)


def _holding(service: ComputeService, call: Call) -> ServerPorts:
    with service.database.read() as connection:
        return interfaces.server_ports_of(find(connection, call))


def _fixed(holding: ServerPorts, argument: Any) -> str:
    """The address that is asked for, else the first that will do."""
    addresses = [address for port in holding.ports for address in port.addresses]
    if not addresses:
        raise ComputeError("No fixed IPs associated to instance")
    wanted = argument.get("fixed_address")
    if wanted is not None:
        if wanted not in addresses:
            raise ComputeError("Specified fixed address not assigned to instance")
        return str(wanted)
    for address in addresses:
        if ":" not in address:
            return address
    raise ComputeError(
        f"Unable to associate floating IP {argument['address']} to any fixed IPs for instance "
        f"{holding.server_uuid}. Instance has no fixed IPv4 addresses to associate."
    )


def _look_again(service: ComputeService, server_uuids: set[Any]) -> None:
    service.database.transact(lambda connection: changed_ports.note(connection, server_uuids))
