"""`/moorage-drains`: hosts that are emptied of their servers, as operators ask for it and look at it.

A rebalance is looked at and cancelled here, too: it is a drain of several hosts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.drains import drains, ways
from moorage.compute.drains.drain import Drain, DrainWay, LeavingServer
from moorage.compute.hosts import node_capabilities, status_mirror
from moorage.compute.servers.server import Server
from moorage.compute_api import schema_types as types
from moorage.compute_api.servers.servers import origin_of
from moorage.compute_api.service import ComputeService
from moorage.compute_api.times import plain
from moorage.core.clock import utcnow
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply
from moorage.http.schema import Schema
from moorage.placement.client.contract import PlacementUnavailableError

Json = dict[str, Any]

MAX_PARALLEL = 5
_LONGEST = 366 * 24 * 3600

PACE: Json = {
    "max_parallel": {"type": "integer", "minimum": 1, "maximum": 1000},
    "deadline_seconds": {"type": "integer", "minimum": 1, "maximum": _LONGEST},
}
_ASKED = types.closed(
    {
        "host": types.HOST,
        "way": {"enum": [way.value for way in DrainWay]},
        **PACE,
    },
    ("host",),
)
CREATE = Schema(types.closed({"drain": _ASKED}, ("drain",)))
LIST = Schema(types.once({"host": types.HOST, "kind": {"enum": ["drain", "rebalance"]}}))
CANCEL = Schema(types.closed({"cancel": {"type": "null"}}, ("cancel",)))


def index(service: ComputeService, call: Call) -> Reply:
    """List drains of hosts, or rebalances, the newest first."""
    query = call.checked_query()
    host, rebalances = query.get("host"), query.get("kind") == "rebalance"
    with service.database.read() as connection:
        found = drains.rebalances(connection) if rebalances else drains.listed(connection, host)
        tallies = drains.counts(connection, [drain.id for drain in found])
    return Reply(body={"drains": [_view(drain, tallies[drain.id]) for drain in found]})


def show(service: ComputeService, call: Call) -> Reply:
    """Show a drain, with what became of each server."""
    with service.database.read() as connection:
        drain = drains.find(connection, call.params["drain_id"])
        return Reply(body={"drain": whole(connection, drain)})


def plan(service: ComputeService, call: Call) -> Reply:
    """Show where the servers of a host would go, and which of them nowhere; nothing is changed."""
    asked = call.json()["drain"]
    with service.database.read() as connection:
        drains.require_state(
            connection, asked["host"], _way(asked), down_time=service.settings.service_down_time
        )
        found = [one for one in drains.servers_on(connection, asked["host"]) if one.node_uuid is not None]
        nodes = {server.on_node for server in found}
        able = {node: node_capabilities.of_node(connection, node) for node in nodes}
    staying = {
        server.uuid: ways.refusal(server, able[server.on_node], _way(asked))
        for server in found
        if ways.move_of(server.vm_state, able[server.on_node], _way(asked)) is None
    }
    return Reply(body={"plan": {"host": asked["host"], "servers": _planned(service, found, staying)}})


def create(service: ComputeService, call: Call) -> Reply:
    """Disable a host, and move its servers elsewhere."""
    asked = call.json()["drain"]
    deadline = deadline_of(asked)

    def begin(connection: Connection) -> tuple[Drain, Json]:
        drain = drains.begin(
            connection,
            asked["host"],
            _way(asked),
            asked.get("max_parallel", MAX_PARALLEL),
            deadline,
            origin_of(call),
            down_time=service.settings.service_down_time,
        )
        if drain.disabled_host:
            status_mirror.note(connection, asked["host"])
        return drain, whole(connection, drain)

    drain, shown = service.database.transact(begin)
    if drain.disabled_host:
        service.statuses.follow(asked["host"])
    return Reply(202, {"drain": shown})


def act(service: ComputeService, call: Call) -> Reply:
    """Cancel a drain: what moves goes on, nothing more begins."""

    def cancel(connection: Connection) -> Json:
        return whole(connection, drains.cancel(connection, call.params["drain_id"]))

    return Reply(202, {"drain": service.database.transact(cancel)})


def deadline_of(asked: Json) -> datetime | None:
    seconds = asked.get("deadline_seconds")
    return None if seconds is None else utcnow() + timedelta(seconds=seconds)


def _way(asked: Json) -> DrainWay:
    return DrainWay(asked.get("way", DrainWay.AUTO))


def _planned(service: ComputeService, found: Sequence[Server], staying: Mapping[str, str]) -> list[Json]:
    leaving = [server for server in found if server.uuid not in staying]
    try:
        plans = service.planner.plan_moves(leaving) if leaving else []
    except PlacementUnavailableError as error:
        raise HttpError(503, f"Placement can't be reached: {error}") from error
    places = {server.uuid: plan for server, plan in zip(leaving, plans, strict=True)}

    def view(server: Server) -> Json:
        plan = places.get(server.uuid)
        return {
            "id": server.uuid,
            "name": server.name,
            "status": server.status,
            "host": None if plan is None or plan.place is None else plan.place.host,
            "reason": staying[server.uuid] if plan is None else plan.sentence,
        }

    return [view(server) for server in found]


def whole(connection: Connection, drain: Drain) -> Json:
    """With each of its servers."""
    tally = drains.counts(connection, [drain.id])[drain.id]
    servers = [_server(one) for one in drains.leaving(connection, drain.id)]
    return {**_view(drain, tally), "servers": servers}


def _view(drain: Drain, tally: dict[str, int]) -> Json:
    return {
        "id": drain.uuid,
        "host": drain.host,
        "goal": drain.goal,
        "way": drain.way,
        "max_parallel": drain.max_parallel,
        "deadline_at": plain(drain.deadline_at),
        "state": drain.state,
        "disabled_host": drain.disabled_host,
        "created_at": plain(drain.created_at),
        "finished_at": plain(drain.finished_at),
        "counts": tally,
    }


def _server(one: LeavingServer) -> Json:
    return {
        "id": one.server_uuid,
        "source": one.source_host,
        "target": one.target_host,
        "state": one.state,
        "move": one.move,
        "tries": one.tries,
        "reason": one.reason,
        "updated_at": plain(one.updated_at),
    }
