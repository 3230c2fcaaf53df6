"""`/servers` and `/servers/{id}`: what users boot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy.engine import Connection

from moorage.compute.hosts import host_status
from moorage.compute.servers import lifecycle, listing, soft_deletes
from moorage.compute.servers import servers as domain
from moorage.compute.servers.actions import Origin
from moorage.compute.servers.creation import CreationRequest
from moorage.compute.servers.listing import ServerQuery
from moorage.compute.servers.server import Server
from moorage.compute_api import links
from moorage.compute_api.endpoint import RULE, is_admin, owner_of, visible_project
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.schema_types import as_boolean
from moorage.compute_api.servers import server_body, server_filters
from moorage.compute_api.servers.passwords import password
from moorage.compute_api.servers.server_views import ServerView
from moorage.compute_api.service import ComputeService
from moorage.core import context
from moorage.http.call import Call
from moorage.http.reply import Reply, no_content

T = TypeVar("T")
INDEX_ALL = f"{RULE}servers:index:get_all_tenants"
DETAIL_ALL = f"{RULE}servers:detail:get_all_tenants"


def origin_of(call: Call) -> Origin:
    asked = context.current()
    return Origin(
        asked.request_id, call.caller.user_id or "", call.caller.project_id or "", asked.global_request_id
    )


def find(connection: Connection, call: Call, *, deleted: bool = False) -> Server:
    """The server that the path names, if the caller may know of it; 403 if not for what is asked."""
    server = domain.find(
        connection, call.params["server_id"], project_id=visible_project(call), deleted=deleted
    )
    context.learn(server=server.uuid, host=server.host or "")
    call.admit(owner_of(server))
    return server


def lock(connection: Connection, call: Call) -> Server:
    """As `find`, held until the transaction ends."""
    server = domain.lock(connection, call.params["server_id"], project_id=visible_project(call))
    context.learn(server=server.uuid, host=server.host or "")
    call.admit(owner_of(server))
    return server


def fetch_limits(service: ComputeService, call: Call) -> None:
    """Those of the server's project, which another service may keep: not while a server is held."""
    if not service.limits.are_ours:
        with service.database.read() as connection:
            server = find(connection, call)
        service.limits.fetch(server.project_id)


def index(service: ComputeService, call: Call) -> Reply:
    """List servers."""
    view = ServerView(call)
    found = _listed(service, call, INDEX_ALL, listing.brief_page)
    return Reply(body=_page(service, call, [view.brief(uuid, name) for uuid, name in found], "servers"))


def detail(service: ComputeService, call: Call) -> Reply:
    """List servers with all that is known of them."""
    view = ServerView(call)
    found = _listed(service, call, DETAIL_ALL, listing.page)
    statuses = _host_statuses(service, view, found)
    shown = [view.full(server, statuses) for server in found]
    return Reply(body=_page(service, call, shown, "servers/detail"))


def _listed(
    service: ComputeService,
    call: Call,
    all_tenants_rule: str,
    read: Callable[[Connection, ServerQuery], list[T]],
) -> list[T]:
    wanted = server_filters.read(service, call, all_tenants_rule)
    if wanted is None:
        return []
    with service.database.read() as connection:
        return read(connection, wanted)


def _page(service: ComputeService, call: Call, shown: list[dict[str, Any]], path: str) -> dict[str, Any]:
    limit, _ = server_filters.page_bounds(call.query, service.settings.max_limit)
    further = links.next_page(call, path, [server["id"] for server in shown], limit)
    return {"servers": shown, "servers_links": further} if further else {"servers": shown}


def _host_statuses(service: ComputeService, view: ServerView, found: list[Server]) -> dict[str | None, str]:
    hosts = [server.host for server in found if view.visibility(server).wants_host_status]
    if not hosts:
        return {}
    with service.database.read() as connection:
        return host_status.of_hosts(connection, hosts, service.settings.service_down_time)


def show(service: ComputeService, call: Call) -> Reply:
    """Show a server."""
    view = ServerView(call)
    with service.database.read() as connection:
        server = find(connection, call)
        groups = (
            domain.groups_of(connection, server.id) if call.version >= Microversion.GROUPS_IN_SERVER else None
        )
    return Reply(body={"server": view.full(server, _host_statuses(service, view, [server]), groups)})


def create(service: ComputeService, call: Call) -> Reply:
    """Create one server or several."""
    body = call.json()
    asked = body["server"]
    wanted, bounds = server_body.read(service, call, body)
    made = service.creations.submit(CreationRequest(origin_of(call), wanted, bounds))
    service.wake()
    if as_boolean(asked.get("return_reservation_id", False)):
        return Reply(202, {"reservation_id": made.reservation_id})
    shown = ServerView(call).created(made.uuids[0], asked)
    shown["adminPass"] = asked.get("adminPass") or password()
    return Reply(202, {"server": shown}, headers={"location": shown["links"][0]["href"]})


def update(service: ComputeService, call: Call) -> Reply:
    """Change a server's name, description, host name, access addresses or disk configuration."""
    given = call.json()["server"]
    columns = {column: given[name] for name, column in _UPDATABLE.items() if name in given}
    if "name" in columns:
        columns["name"] = columns["name"].strip()
    for column in ("access_ip_v4", "access_ip_v6"):
        if column in columns:
            columns[column] = server_body.plain_address(columns[column])
    asked_for = {key: given[name] for name, key in _UPDATABLE_REQUEST.items() if name in given}

    def change(connection: Connection) -> tuple[Server, list[str] | None]:
        server = lock(connection, call)
        if "pinned_availability_zone" in given:
            lifecycle.pin_zone(connection, server, given["pinned_availability_zone"])
        changed = {**columns, "request": {**server.request, **asked_for}} if asked_for else columns
        if changed:
            domain.update(connection, server.id, **changed)
        if given:
            server = find(connection, call)
        groups = (
            domain.groups_of(connection, server.id) if call.version >= Microversion.GROUPS_IN_SERVER else None
        )
        return server, groups

    server, groups = service.database.transact(change)
    view = ServerView(call)
    return Reply(body={"server": view.updated(server, _host_statuses(service, view, [server]), groups)})


_UPDATABLE = {
    "name": "name",
    "description": "description",
    "hostname": "hostname",
    "accessIPv4": "access_ip_v4",
    "accessIPv6": "access_ip_v6",
}
_UPDATABLE_REQUEST = {"OS-DCF:diskConfig": "disk_config"}
"""Of what was asked for when the server was made."""


def delete(service: ComputeService, call: Call) -> Reply:
    """Delete a server."""
    origin = origin_of(call)

    def remove(connection: Connection) -> None:
        server = lock(connection, call)
        lifecycle.require_unlocked(server, as_admin=is_admin(call))
        soft_deletes.delete(connection, server, origin, service.settings.reclaim_interval)

    service.database.transact(remove)
    service.wake()
    return no_content()
