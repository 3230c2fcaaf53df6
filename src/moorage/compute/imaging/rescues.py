"""Rescues: a server that does not boot any more is booted from another image, with its own disk beside it."""

from __future__ import annotations

import msgspec
from sqlalchemy.engine import Connection

from moorage.bus.contract import ADMIN_PASSWORD
from moorage.compute.servers.actions import Origin
from moorage.compute.servers.lifecycle import ask_host, require_state
from moorage.compute.servers.server import Server
from moorage.compute.servers.states import TaskState, VmState
from moorage.images.contract import Image

_RESCUABLE = (VmState.ACTIVE, VmState.STOPPED, VmState.ERROR)


def rescue(
    connection: Connection, server: Server, origin: Origin, image: Image | None, password: str
) -> None:
    """With this image, or the one that it was made from; what the server is said to be made from stays. The
    password is for drivers that can set one in what the server is rescued with."""
    require_state(server, "rescue", _RESCUABLE)
    chosen = server.request.get("image") if image is None else msgspec.to_builtins(image)
    secrets = {ADMIN_PASSWORD: password}
    ask_host(connection, server, origin, "rescue", TaskState.RESCUING, {"image": chosen}, secrets=secrets)


def unrescue(connection: Connection, server: Server, origin: Origin) -> None:
    require_state(server, "unrescue", (VmState.RESCUED,))
    ask_host(connection, server, origin, "unrescue", TaskState.UNRESCUING)
