"""`/servers/{id}/migrations`: the live migrations of a server that are under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.errors import NotFoundError
from moorage.compute.moves import live_migrations, migrations
from moorage.compute.moves.migrations import Migration, MigrationType
from moorage.compute.moves.moves import ActionContext
from moorage.compute.servers import lifecycle
from moorage.compute_api import times
from moorage.compute_api.endpoint import RULE, is_admin, owner_of
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.moves.migrations import ends, newer
from moorage.compute_api.servers.servers import find, lock, origin_of
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.reply import Reply, empty

Json = dict[str, Any]

HOSTS = f"{RULE}servers:migrations:index:host"
_AMOUNTS = tuple(f"{of}_{part}" for of in ("memory", "disk") for part in ("total", "processed", "remaining"))
"""How much is to be moved and was: drivers don't tell."""


def index(service: ComputeService, call: Call) -> Reply:
    """List a server's live migrations that are under way."""
    with service.database.read() as connection:
        server = find(connection, call)
        found = migrations.in_progress(connection, server.id)
    with_hosts = call.allows(HOSTS, owner_of(server))
    return Reply(body={"migrations": [_shown(call, one, with_hosts=with_hosts) for one in found]})


def show(service: ComputeService, call: Call) -> Reply:
    """Show a live migration that is under way."""
    identity = call.params["migration_id"]
    with service.database.read() as connection:
        server = find(connection, call)
        migration = migrations.find(connection, server.uuid, identity)
    if migration is None:
        raise NotFoundError(f"In-progress live migration {identity} is not found for server {server.uuid}.")
    if migration.kind != MigrationType.LIVE:
        raise NotFoundError(f"Migration {identity} for server {server.uuid} is not live-migration.")
    if not migration.in_progress:
        raise NotFoundError(f"Live migration {identity} for server {server.uuid} is not in progress.")
    return Reply(body={"migration": _shown(call, migration, with_hosts=True)})


def act(service: ComputeService, call: Call) -> Reply:
    """Have a live migration end soon."""
    call.json()
    return _change(service, call, lambda ask: live_migrations.force_complete(ask, _identity(call)))


def delete(service: ComputeService, call: Call) -> Reply:
    """Abort a live migration."""
    queued = call.version >= Microversion.QUEUED_LIVE_MIGRATION_ABORTED
    return _change(service, call, lambda ask: live_migrations.abort(ask, _identity(call), queued=queued))


def _identity(call: Call) -> str:
    return call.params["migration_id"]


def _change(service: ComputeService, call: Call, change: Callable[[ActionContext], None]) -> Reply:
    def work(connection: Connection) -> None:
        server = lock(connection, call)
        lifecycle.require_unlocked(server, as_admin=is_admin(call))
        change(ActionContext(connection, server, origin_of(call), service.settings.service_down_time))

    service.database.transact(work)
    service.wake()
    return empty(202)


def _shown(call: Call, migration: Migration, *, with_hosts: bool) -> Json:
    return {
        "id": migration.id,
        "server_uuid": migration.server_uuid,
        "status": migration.status,
        **ends(migration, shown=with_hosts),
        **{f"{name}_bytes": None for name in _AMOUNTS},
        "created_at": times.plain(migration.created_at),
        "updated_at": times.plain(migration.updated_at),
        **newer(call, migration),
    }
