"""What may be asked of a server that changes its host or its flavor.

As in `lifecycle.py`, each request checks the state, changes it and writes the operation, all in the caller's
transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError, ConflictError, NotFoundError
from moorage.compute.flavors.flavors import Flavor
from moorage.compute.hosts import node_capabilities, services
from moorage.compute.moves import migrations
from moorage.compute.moves.migrations import Migration, MigrationStatus, MigrationType
from moorage.compute.moves.move import Move
from moorage.compute.quotas import classes, usage
from moorage.compute.quotas.quotas import Limits
from moorage.compute.quotas.usage import QuotaHeadroom
from moorage.compute.servers import actions, servers
from moorage.compute.servers.actions import Origin
from moorage.compute.servers.lifecycle import require_state
from moorage.compute.servers.server import Server
from moorage.compute.servers.server_errors import ServerNotReady, ServiceUnavailable
from moorage.compute.servers.states import TaskState, VmState
from moorage.db.tables.compute import flavors as flavor_table
from moorage.db.tables.compute import nodes
from moorage.ledger import queue

_MOVABLE = (VmState.ACTIVE, VmState.STOPPED)


@dataclass(frozen=True)
class ActionContext:
    """Somebody asks something of a server, which nobody else changes until the transaction ends."""

    connection: Connection
    server: Server
    origin: Origin
    down_time: int
    """Seconds after which a host without a heartbeat is down."""

    def host_is_up(self, host: str) -> bool:
        found = services.listed(self.connection, host=host, binary=services.AGENT)
        return any(service.is_up(self.down_time) for service in found)


@dataclass(frozen=True)
class MoveQuotas:
    """The quotas of a server's project, and those of its user's own."""

    project: Limits
    user: Limits


def resize(
    ask: ActionContext,
    flavor: Flavor,
    bounds: MoveQuotas,
    disk_config: str | None = None,
    *,
    may_stay: bool = False,
) -> None:
    """To another flavor, on another host; `may_stay` if its own will do, too."""
    server = ask.server
    require_state(server, "resize", _MOVABLE)
    _require_host_up(ask)
    _require_able_to_move(ask)
    wanted = flavor.as_booted()
    if wanted["id"] == server.flavor["id"]:
        raise ComputeError("When resizing, instances must change flavor!")
    if not flavor.disk and server.flavor["disk"]:
        raise ComputeError(
            "Server disk was unable to be resized because: Resize to zero disk flavor is not allowed."
        )
    _require_room_for_image(server, flavor)
    reserved = reserve(ask, server.flavor, wanted, bounds)
    if disk_config is not None:
        request = {**server.request, "disk_config": disk_config}
        servers.update(ask.connection, server.id, request=request)
    begun = _begin(
        ask,
        MigrationType.RESIZE,
        MigrationStatus.PRE_MIGRATING,
        new_flavor=wanted,
        new_flavor_id=flavor.id,
        reserved=reserved,
    )
    move = Move.from_migration(begun, zone=server.availability_zone, may_stay=may_stay)
    _start(ask, "resize", "cold_move", TaskState.RESIZE_PREP, move)


def migrate(ask: ActionContext, host: str | None) -> None:
    """To another host, as it is; to the one that an administrator names, or any."""
    server = ask.server
    require_state(server, "migrate", _MOVABLE)
    _require_host_up(ask)
    _require_able_to_move(ask)
    if host is not None:
        _require_agent(ask, host)
        if host == server.host:
            raise ComputeError("Cannot migrate to the host where the server exists.")
    begun = _begin(ask, MigrationType.MIGRATION, MigrationStatus.PRE_MIGRATING, dest_host=host)
    move = Move.from_migration(begun, zone=server.availability_zone, target=host)
    _start(ask, "migrate", "cold_move", TaskState.RESIZE_PREP, move)


def require_live(ask: ActionContext, host: str | None) -> None:
    """Refuse a live migration that makes no sense."""
    server = ask.server
    require_state(server, "os-migrateLive", (VmState.ACTIVE, VmState.PAUSED))
    _require_able_to_move(ask, live=True)
    if host is not None:
        _require_agent(ask, host)
        if host == server.host:
            raise ComputeError(f"Unable to migrate instance ({server.uuid}) to current host ({host}).")


def live_migrate(ask: ActionContext, host: str | None) -> None:
    """To another host, while it runs."""
    server = ask.server
    require_live(ask, host)
    begun = _begin(ask, MigrationType.LIVE, MigrationStatus.QUEUED, dest_host=host)
    move = Move.from_migration(begun, zone=server.availability_zone, target=host, runs=True)
    _start(ask, "live-migration", "live_migrate", TaskState.MIGRATING, move)


def evacuate(ask: ActionContext, host: str | None, *, stopped: bool) -> None:
    """From a host that is dead; `stopped` if the server shall not run at once where it comes to."""
    server = ask.server
    if host is not None:
        if not services.listed(ask.connection, host=host, binary=services.AGENT):
            raise NotFoundError(f"Compute host {host} not found.")
        if host == server.host:
            raise ComputeError("The target host can't be the same one.")
    require_state(server, "evacuate", (*_MOVABLE, VmState.ERROR))
    if server.host is not None and ask.host_is_up(server.host):
        raise ComputeError(f"Compute service of {server.host} is still in use.")
    begun = _begin(ask, MigrationType.EVACUATION, MigrationStatus.ACCEPTED, dest_host=host)
    runs = not stopped and server.vm_state != VmState.STOPPED
    move = Move.from_migration(begun, zone=server.availability_zone, target=host, runs=runs)
    _start(ask, "evacuate", "evacuate", TaskState.REBUILDING, move)


def reserve(
    ask: ActionContext, before: Mapping[str, Any], after: Mapping[str, Any], bounds: MoveQuotas
) -> dict[str, int]:
    """Take now what a larger flavor will use, so that nobody else gets it meanwhile."""
    more = usage.growth(before, after)
    further = classes.growth(before, after, bounds.project)
    if any(more.values()) or further:
        project_id, user_id = ask.server.project_id, ask.server.user_id
        used = usage.lock(ask.connection, project_id) | classes.used(ask.connection, project_id, further)
        QuotaHeadroom(bounds.project, used).grant({**more, **further}, 1, 1)
        if bounds.user:
            used = usage.used_by(ask.connection, project_id, user_id)
            QuotaHeadroom({**bounds.project, **bounds.user}, used).grant(more, 1, 1)
        usage.add(ask.connection, project_id, more)
    return more


def _require_agent(ask: ActionContext, host: str) -> None:
    if not services.listed(ask.connection, host=host, binary=services.AGENT):
        raise ComputeError(f"Compute host {host} could not be found.")


def _require_host_up(ask: ActionContext) -> None:
    if ask.server.host is None:
        raise ServerNotReady(ask.server.uuid)
    if not ask.host_is_up(ask.server.host):
        raise ServiceUnavailable


def _require_able_to_move(ask: ActionContext, *, live: bool = False) -> None:
    """A machine does not leave its place; nobody has to wait for its host to say so."""
    query = sa.select(nodes.c.hypervisor_type, nodes.c.facts).where(nodes.c.uuid == ask.server.node_uuid)
    found = ask.connection.execute(query).one_or_none()
    if found is None:
        return
    able = node_capabilities.read(*found)
    if not (able.live_migrate if live else able.migrate):
        raise ComputeError(
            f"Instance {ask.server.uuid} cannot be moved{' live' if live else ''}: its host has no way to."
        )


def _require_room_for_image(server: Server, flavor: Flavor) -> None:
    image: Mapping[str, Any] = server.request.get("image") or {}
    if int(image.get("min_ram") or 0) > flavor.ram:
        raise ComputeError("Flavor's memory is too small for requested image.")
    if flavor.disk and int(image.get("min_disk") or 0) > flavor.disk:
        raise ComputeError("Flavor's disk is smaller than the minimum size specified in image metadata.")


def _begin(ask: ActionContext, kind: MigrationType, status: MigrationStatus, **more: Any) -> Migration:
    server = ask.server
    if server.host is None or server.node_uuid is None:
        raise ServerNotReady(server.uuid)
    if migrations.active(ask.connection, server.id) is not None:
        raise ConflictError(f"Instance {server.uuid} has a migration that is not over yet.")
    known = sa.select(flavor_table.c.id).where(flavor_table.c.flavorid == server.flavor["id"])
    flavor_id = ask.connection.execute(known).scalar_one_or_none()
    columns = {
        "server_id": server.id,
        "server_uuid": server.uuid,
        "user_id": ask.origin.user_id,
        "project_id": ask.origin.project_id,
        "kind": kind.value,
        "status": status.value,
        "source_host": server.host,
        "source_node": server.node or server.host,
        "source_node_uuid": server.node_uuid,
        "old_flavor": server.flavor,
        "new_flavor": server.flavor,
        "old_flavor_id": flavor_id,
        "new_flavor_id": flavor_id,
        "old_state": server.vm_state,
    }
    return migrations.begin(ask.connection, **{**columns, **more})


def _start(ask: ActionContext, action: str, kind: str, task_state: TaskState, move: Move) -> None:
    action_id = actions.start(ask.connection, ask.server.id, action, ask.origin)
    servers.set_state(ask.connection, ask.server.id, task_state=task_state, progress=0)
    queue.enqueue(ask.connection, ask.server.id, kind, move.as_data(), action_id)
