"""The ports of a server, as its row keeps them: with the server, since a later delete needs them."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.compute.servers.server import Server
from moorage.conductor.engine.work import Work
from moorage.conductor.placing.placed import Placed, Placing
from moorage.network.contract import Binding, PortRecord, PortRequest, ServerPorts


def of(work: Work[Any]) -> list[PortRecord]:
    kept = work.changes.get("request", work.server.request).get("ports", [])
    return [msgspec.convert(port, PortRecord) for port in kept]


def keep(work: Work[Any], ports: list[PortRecord]) -> None:
    request = work.changes.get("request", work.server.request)
    work.changes["request"] = {**request, "ports": msgspec.to_builtins(ports)}


def bring(work: Work[Any], port_id: str) -> None:
    """The user brings one more port, unless it is empty."""
    request = work.changes.get("request", work.server.request)
    if port_id and port_id not in request.get("brought", ()):
        work.changes["request"] = {**request, "brought": [*request.get("brought", ()), port_id]}


def lose(work: Work[Any], port_id: str) -> None:
    """The server has this one no more."""
    keep(work, [port for port in of(work) if port.id != port_id])
    request = work.changes["request"]
    brought = [one for one in request.get("brought", ()) if one != port_id]
    work.changes["request"] = {**request, "brought": brought}


def holding(work: Work[Any]) -> ServerPorts:
    """All that the server may have of the network."""
    return ServerPorts.of(work.server.uuid, work.changes.get("request", work.server.request))


def order(server: Server) -> PortRequest:
    """What a server that has no ports yet asks for."""
    return PortRequest(
        server.uuid,
        server.project_id,
        server.name,
        server.request.get("networks", "auto"),
        server.request.get("security_group_ids", []),
        server.requested_zone or "",
        server.hostname,
    )


def binding(work: Work[Placing], host: str, cell: str) -> Binding:
    """The ports at a host; if that was just decided on, with who serves them there."""
    placed = work.state.placed
    if placed is None or placed.host != host:
        return Binding(work.server.uuid, of(work), host, cell)
    return Binding(
        work.server.uuid, of(work), host, cell, placed.zone or "", placed.mappings, placed.binds_ports
    )


def binding_at(work: Work[Placing], placed: Placed) -> Binding:
    """The ports at the place that was decided on."""
    return binding(work, placed.host, placed.cell)


def arriving(work: Work[Any]) -> list[dict[str, Any]]:
    """The ports as the host is told of them that expects the server, while they are bound elsewhere."""
    told: list[dict[str, Any]] = msgspec.to_builtins([port.arriving() for port in of(work)])
    return told
