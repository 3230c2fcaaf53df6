"""`/servers/{id}/topology`: on which NUMA cells a server is."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.bus.contract import QuestionKind
from moorage.compute.servers.server import Server
from moorage.compute.servers.server_errors import ServiceUnavailable
from moorage.compute.servers.states import VmState
from moorage.compute_api.consoles.asking import ask
from moorage.compute_api.endpoint import owner_of
from moorage.compute_api.servers.servers import find
from moorage.compute_api.service import ComputeService
from moorage.drivers.parts import ServerCell, ServerTopology
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply

SEES_HOST = "compute:server:topology:host:index"


def show(service: ComputeService, call: Call) -> Reply:
    """Show the NUMA topology of a server: none, unless its flavor or image asks for one."""
    with service.database.read() as connection:
        server = find(connection, call)
    found = _topology(service, call, server)
    with_host = call.allows(SEES_HOST, owner_of(server))
    nodes = [_shown(cell, with_host=with_host) for cell in found.cells]
    return Reply(body={"nodes": nodes, "pagesize_kb": found.page_kib if nodes else None})


def _topology(service: ComputeService, call: Call, server: Server) -> ServerTopology:
    """Of a server that is nowhere, or of a driver that puts none on cells, there is nothing to tell."""
    if server.host is None or server.vm_state == VmState.BUILDING:
        return ServerTopology()
    try:
        answer = ask(service, call, server, QuestionKind.TOPOLOGY)
    except HttpError as error:
        if error.status == 501:
            return ServerTopology()
        raise
    if answer.refusal is not None:
        raise ServiceUnavailable
    return msgspec.convert(answer.facts, ServerTopology, str_keys=True)


def _shown(cell: ServerCell, *, with_host: bool) -> dict[str, Any]:
    shown = {"vcpu_set": cell.vcpus, "siblings": cell.siblings, "memory_mb": cell.memory_mb}
    if not with_host:
        return shown
    return {**shown, "host_node": cell.host_cell, "cpu_pinning": cell.pins}
