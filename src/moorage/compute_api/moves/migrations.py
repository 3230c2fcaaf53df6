"""`/os-migrations`: moves of servers, under way and over."""

from __future__ import annotations

from typing import Any

from moorage.compute.moves import migrations as domain
from moorage.compute.moves.migrations import Migration, MigrationQuery
from moorage.compute_api import links, times
from moorage.compute_api.endpoint import RULE, own_project
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.servers.server_filters import changes, page_bounds
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call, Query
from moorage.http.reply import Reply

Json = dict[str, Any]

ALL_PROJECTS = f"{RULE}os-migrations:index:all_projects"
HOSTS = f"{RULE}os-migrations:index:host"
_EQUAL = {
    "instance_uuid": "server_uuid",
    "status": "status",
    "migration_type": "kind",
    "user_id": "user_id",
    "project_id": "project_id",
}
_YES = frozenset({"1", "t", "true", "on", "y", "yes"})


def index(service: ComputeService, call: Call) -> Reply:
    """List migrations."""
    query = call.checked_query()
    project_id = query.get("project_id")
    if not project_id or project_id != call.caller.project_id:
        call.authorize(ALL_PROJECTS, own_project(call))
    if "host" in query or "source_compute" in query:
        call.authorize(HOSTS, own_project(call))  # whoever may not see hosts may not ask by them either
    listing = _listing(service, call, query)
    found = []
    if (query.get("hidden") or "").lower() not in _YES and listing.limit != 0:
        with service.database.read() as connection:
            found = domain.page(connection, listing)
    with_hosts = call.allows(HOSTS, own_project(call))
    body: Json = {"migrations": [_shown(call, one, with_hosts=with_hosts) for one in found]}
    if listing.limit is not None:
        further = links.next_page(call, "os-migrations", [one.uuid for one in found], listing.limit)
        if further:
            body["migrations_links"] = further
    return Reply(body=body)


def _listing(service: ComputeService, call: Call, query: Query) -> MigrationQuery:
    equal = {column: query.get(name) for name, column in _EQUAL.items() if name in query}
    host = query.get("host")
    if host is None and "source_compute" in query:
        equal["source_host"] = query.get("source_compute")
    kept = {column: value for column, value in equal.items() if value is not None}
    if call.version < Microversion.PAGES_OF_MIGRATIONS:
        return MigrationQuery(kept, host)
    before = query.get("changes-before") if call.version >= Microversion.CHANGES_BEFORE else None
    since, until = changes(query.get("changes-since"), before)
    limit, marker = page_bounds(query, service.settings.max_limit)
    visible = None if call.allows(ALL_PROJECTS, own_project(call)) else call.caller.project_id
    return MigrationQuery(
        kept, host, since, until, newest_first=True, limit=limit, marker=marker, marker_of=visible
    )


def _shown(call: Call, migration: Migration, *, with_hosts: bool) -> Json:
    shown: Json = {
        "id": migration.id,
        "instance_uuid": migration.server_uuid,
        "status": migration.status,
        "old_instance_type_id": migration.old_flavor_id,
        "new_instance_type_id": migration.new_flavor_id,
        **ends(migration, shown=with_hosts),
        "created_at": times.plain(migration.created_at),
        "updated_at": times.plain(migration.updated_at),
    }
    if call.version >= Microversion.SERVER_MIGRATIONS:
        shown["migration_type"] = migration.kind
        if migration.in_progress:
            collection = f"servers/{migration.server_uuid}/migrations"
            shown["links"] = links.of(call, collection, str(migration.id))
    return {**shown, **newer(call, migration)}


def ends(migration: Migration, *, shown: bool) -> Json:
    """From where to where; where that is not this caller's business, the fields are empty."""
    found: Json = {
        "source_compute": migration.source_host,
        "source_node": migration.source_node,
        "dest_compute": migration.dest_host,
        "dest_node": migration.dest_node,
        "dest_host": migration.dest_address,
    }
    return found if shown else dict.fromkeys(found)


def newer(call: Call, migration: Migration) -> Json:
    """What microversions added."""
    shown: Json = {}
    if call.version >= Microversion.PAGES_OF_MIGRATIONS:
        shown["uuid"] = migration.uuid
    if call.version >= Microversion.OWNERS_OF_MIGRATIONS:
        shown |= {"user_id": migration.user_id, "project_id": migration.project_id}
    return shown
