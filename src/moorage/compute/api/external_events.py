"""`/os-server-external-events`: what other services tell us about servers."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from moorage.compute.service import ComputeService
from moorage.db.among import among
from moorage.db.tables.compute import servers
from moorage.http.call import Call
from moorage.http.reply import Reply

_NEED_TAG = frozenset({"volume-extended", "power-update", "accelerator-request-bound"})


def create(service: ComputeService, call: Call) -> Reply:
    """Report events of servers; each gets an answer of its own."""
    events = call.json()["events"]
    named = {event["server_uuid"] for event in events}
    query = sa.select(servers.c.uuid, servers.c.host)
    with service.database.read() as connection:
        known = query.where(among(connection, servers.c.uuid, named), servers.c.deleted_at.is_(None))
        hosts = dict(connection.execute(known).all())
    for event in events:
        event["code"] = _code(event, hosts)
        event["status"] = event.get("status", "completed") if event["code"] == 200 else "failed"
    mixed = any(event["code"] != 200 for event in events)
    return Reply(207 if mixed else 200, {"events": events})


def _code(event: dict[str, Any], hosts: dict[str, str | None]) -> int:
    if event["server_uuid"] not in hosts:
        return 404
    if event["name"] in _NEED_TAG and event.get("tag") is None:
        return 400
    return 200 if hosts[event["server_uuid"]] else 422
