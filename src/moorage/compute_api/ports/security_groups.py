"""The actions `addSecurityGroup` and `removeSecurityGroup`: on the server's ports, at once."""

from __future__ import annotations

from functools import partial
from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.ports import interfaces
from moorage.compute.servers import servers
from moorage.compute_api.ports.server_networks import AT_ATTACH, requester_of, told
from moorage.compute_api.servers.servers import find, lock
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.reply import Reply, empty

_DEFAULT = ["default"]


def _change(joins: bool, service: ComputeService, call: Call, argument: Any) -> Reply:
    with service.database.read() as connection:
        server = find(connection, call)
    with told(AT_ATTACH):
        holding, requester = interfaces.server_ports_of(server), requester_of(call)
        name = service.network.regroup(requester, holding, argument["name"], joins=joins)

    def keep(connection: Connection) -> None:
        found = lock(connection, call)
        others = [one for one in found.request.get("security_groups") or _DEFAULT if one != name]
        request = {**found.request, "security_groups": [*others, name] if joins else others}
        servers.update(connection, found.id, request=request)

    service.database.transact(keep)
    return empty(202)


add = partial(_change, True)
remove = partial(_change, False)
