"""`/servers/{id}/os-instance-actions`: what was done to a server."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from moorage.compute.servers import actions
from moorage.compute.servers.actions import Action
from moorage.compute.servers.server import Server
from moorage.compute_api import links, times
from moorage.compute_api.endpoint import RULE, owner_of
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.servers.server_filters import changes, page_bounds
from moorage.compute_api.servers.server_views import host_id
from moorage.compute_api.servers.servers import find
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.reply import Reply

Json = dict[str, Any]

EVENTS = f"{RULE}os-instance-actions:events"
DETAILS = f"{RULE}os-instance-actions:events:details"


def index(service: ComputeService, call: Call) -> Reply:
    """List the actions on a server."""
    query = call.checked_query()
    bounds: Json = {}
    limit = 0
    if call.version >= Microversion.PAGES_OF_ACTIONS:
        since, before = changes(query.get("changes-since"), query.get("changes-before"))
        limit, marker = page_bounds(query, service.settings.max_limit)
        bounds = {"since": since, "before": before, "limit": limit, "marker": marker}
    with service.database.read() as connection:
        server = find(connection, call, deleted=call.version >= Microversion.ACTIONS_OF_DELETED_SERVERS)
        found = actions.of_server(connection, server.id, **bounds)
    body: Json = {"instanceActions": [_shown(call, server, action) for action in found]}
    path = f"servers/{server.uuid}/os-instance-actions"
    further = links.next_page(call, path, [action.request_id for action in found], limit)
    if further:
        body["links"] = further
    return Reply(body=body)


def show(service: ComputeService, call: Call) -> Reply:
    """Show an action on a server, with its steps."""
    with service.database.read() as connection:
        server = find(connection, call, deleted=call.version >= Microversion.ACTIONS_OF_DELETED_SERVERS)
        action = actions.find(connection, server.id, call.params["request_id"])
    shown = _shown(call, server, action)
    sees_all = call.allows(EVENTS, owner_of(server))
    if sees_all or call.version >= Microversion.MORE_EVENTS:
        shown["events"] = [_event(call, server, action, event, sees_all=sees_all) for event in action.events]
    return Reply(body={"instanceAction": shown})


def _shown(call: Call, server: Server, action: Action) -> Json:
    shown = {
        "action": action.action,
        "instance_uuid": server.uuid,
        "request_id": action.request_id,
        "user_id": action.user_id,
        "project_id": action.project_id,
        "start_time": times.plain(action.started_at),
        "message": action.message,
    }
    if call.version >= Microversion.PAGES_OF_ACTIONS:
        shown["updated_at"] = times.plain(action.updated_at)
    return shown


def _event(call: Call, server: Server, action: Action, event: Json, *, sees_all: bool) -> Json:
    shown = {
        "event": event["event"],
        "start_time": _moment(event["start_time"]),
        "finish_time": _moment(event.get("finish_time")),
        "result": event.get("result"),
    }
    if sees_all:
        shown["traceback"] = None
    if call.version >= Microversion.HOSTS_OF_EVENTS:
        if sees_all:
            shown["host"] = event.get("host") or ""  # a conductor's: always text, as clients know it
        shown["hostId"] = host_id(event.get("host"), action.project_id)
    if call.version >= Microversion.DETAILS_OF_EVENTS and call.allows(DETAILS, owner_of(server)):
        shown["details"] = event.get("details")
    return shown


def _moment(text: str | None) -> str | None:
    return None if text is None else times.plain(datetime.fromisoformat(text))
