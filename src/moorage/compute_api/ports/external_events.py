"""`/os-server-external-events`: what other services tell us about servers."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.ports import changed_ports, external_events
from moorage.compute.ports.external_events import PLUGGED
from moorage.compute.servers import servers as domain
from moorage.compute.servers.server_errors import ServerNotFound
from moorage.compute_api.servers.servers import origin_of
from moorage.compute_api.service import ComputeService
from moorage.db.among import among
from moorage.db.tables.compute import servers
from moorage.http.call import Call
from moorage.http.reply import Reply
from moorage.ledger import queue

_NEED_TAG = frozenset({"volume-extended", "power-update", "accelerator-request-bound"})


def create(service: ComputeService, call: Call) -> Reply:
    """Report events of servers; each gets an answer of its own."""
    events = call.json()["events"]
    hosts = _hosts(service, {event["server_uuid"] for event in events})
    for event in events:
        event["code"] = _code(event, hosts)
        if event["code"] == 200:
            _take(service, call, event)
        event["status"] = "completed" if event["code"] == 200 else "failed"
    changed = {event["server_uuid"] for event in events if _is_about_ports(event)}
    if changed:
        service.database.transact(lambda connection: _pass_on(connection, sorted(changed)))
    service.wake()
    mixed = any(event["code"] != 200 for event in events)
    return Reply(207 if mixed else 200, {"events": events})


def _hosts(service: ComputeService, named: set[str]) -> dict[str, str | None]:
    query = sa.select(servers.c.uuid, servers.c.host)
    with service.database.read() as connection:
        known = query.where(among(connection, servers.c.uuid, named), servers.c.deleted_at.is_(None))
        return dict(connection.execute(known).all())


def _is_about_ports(event: dict[str, Any]) -> bool:
    return bool(event["code"] == 200 and event["name"].startswith("network-"))


def _pass_on(connection: Connection, server_uuids: list[str]) -> None:
    """To whoever waits for the ports, and for the server's addresses to be read anew."""
    changed_ports.note(connection, server_uuids)
    queue.nudge_at(connection, server_uuids, PLUGGED)


def _code(event: dict[str, Any], hosts: dict[str, str | None]) -> int:
    if event["server_uuid"] not in hosts:
        return 404
    if event["name"] in _NEED_TAG and event.get("tag") is None:
        return 400
    return 200 if hosts[event["server_uuid"]] else 422


def _take(service: ComputeService, call: Call, event: dict[str, Any]) -> None:
    """Let happen what the event is for; the server may have been deleted just now."""
    handler = external_events.HANDLERS.get(event["name"])
    if handler is None:
        return

    def handle(connection: Connection) -> None:
        server = domain.lock(connection, event["server_uuid"])
        handler(connection, server, event.get("tag", ""), origin_of(call))

    try:
        service.database.transact(handle)
    except ServerNotFound:
        event["code"] = 404
