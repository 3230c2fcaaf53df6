"""Rebuilds: a server is made anew where it is, from the same image or another one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from moorage.compute.errors import ComputeError, ConflictError
from moorage.compute.moves import migrations
from moorage.compute.moves.moves import ActionContext
from moorage.compute.servers import actions, servers
from moorage.compute.servers.lifecycle import require_state
from moorage.compute.servers.server import Server
from moorage.compute.servers.server_errors import ServerNotReady
from moorage.compute.servers.states import TaskState, VmState
from moorage.compute.servers.topology import require_same_topology
from moorage.images.contract import Image
from moorage.ledger import queue

_REBUILDABLE = (VmState.ACTIVE, VmState.STOPPED, VmState.ERROR)


@dataclass(frozen=True)
class RebuildRequest:
    """What shall be different afterwards; all else stays."""

    image: Image
    columns: dict[str, Any] = field(default_factory=dict)
    """Of the server's row."""
    request: dict[str, Any] = field(default_factory=dict)
    """Of what the user asked for when it was made."""
    preserve_ephemeral: bool = False
    """What is on its ephemeral disk shall stay."""


def rebuild(ask: ActionContext, wanted: RebuildRequest) -> None:
    server = ask.server
    require_state(server, "rebuild", _REBUILDABLE)
    if server.host is None or server.node_uuid is None:
        raise ServerNotReady(server.uuid)
    if migrations.active(ask.connection, server.id) is not None:
        raise ConflictError(f"Instance {server.uuid} has a migration that is not over yet.")
    _require_fit(server, wanted.image)
    before = (server.request.get("image") or {}).get("properties") or {}
    require_same_topology(server.flavor, before, wanted.image.properties)
    image = msgspec.to_builtins(wanted.image)
    columns = {
        **wanted.columns,
        "image_ref": wanted.image.id,
        "request": {**server.request, **wanted.request, "image": image},
    }
    data = {
        "new_image": wanted.image.id != server.image_ref,
        "runs": server.vm_state != VmState.STOPPED,
        "before": {name: getattr(server, name) for name in columns},
        "preserve_ephemeral": wanted.preserve_ephemeral,
    }
    servers.update(ask.connection, server.id, task_state=TaskState.REBUILDING.value, progress=0, **columns)
    action_id = actions.start(ask.connection, server.id, "rebuild", ask.origin)
    queue.enqueue(ask.connection, server.id, "rebuild", data, action_id)


def _require_fit(server: Server, image: Image) -> None:
    if image.status != "active":
        raise ComputeError(f"Image {image.id} is not active.")
    if image.min_ram > server.flavor["ram"]:
        raise ComputeError("Flavor's memory is too small for requested image.")
    if server.flavor["disk"] and image.min_disk > server.flavor["disk"]:
        raise ComputeError("Flavor's disk is smaller than the minimum size specified in image metadata.")
