"""What an agent is told of a server: a `ServerSpec` in plain values."""

from __future__ import annotations

from typing import Any

from moorage.compute.servers.server import Server
from moorage.scheduler.hints import MACHINE


def of(server: Server, **differences: Any) -> dict[str, Any]:
    """The server's row, with what is different where it goes."""
    return {
        "uuid": server.uuid,
        "name": server.name,
        "project_id": server.project_id,
        "user_id": server.user_id,
        "node_uuid": server.node_uuid,
        "flavor": server.flavor,
        "image": server.request.get("image"),
        "network": server.request.get("ports", []),
        "metadata": server.metadata,
        "user_data": server.user_data,
        "key_name": server.key_name,
        "public_key": server.request.get("public_key"),
        "config_drive": server.config_drive,
        "files": server.request.get("files") or [],
        "instance_name": server.instance_name,
        "hostname": server.hostname,
        "availability_zone": server.availability_zone or "",
        "launch_index": server.launch_index,
        "reservation_id": server.reservation_id,
        "hardware": server.request.get("hardware") or {},
        "hints": _hints(server),
        **differences,
    }


def _hints(server: Server) -> dict[str, Any]:
    """A machine that was asked for as a node, and is none, is one that its pool has to have."""
    hints = server.request.get("scheduler_hints") or {}
    node = server.request.get("node")
    if node and node not in (server.node, server.host):
        return {**hints, MACHINE: [node]}
    return dict(hints)
