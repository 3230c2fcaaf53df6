"""`/moorage-rebalances`: the few moves that win the most, proposed to operators, and made if they like."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from moorage.compute.drains import drains
from moorage.compute.drains.drain import DrainWay, WantedMove
from moorage.compute.errors import ComputeError
from moorage.compute_api import schema_types as types
from moorage.compute_api.hosts import drains as drains_api
from moorage.compute_api.servers.servers import origin_of
from moorage.compute_api.service import ComputeService
from moorage.deciding.cloud_picture import Scope
from moorage.deciding.rebalancer import RebalanceRequest
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply
from moorage.http.schema import Schema
from moorage.placement.client.contract import PlacementUnavailableError
from moorage.scheduler.rebalance.proposal import Goal

Json = dict[str, Any]

MOST = 10
_MOST_MOVES = 1000
_GOAL: Json = {"enum": [goal.value for goal in Goal]}
_WAY: Json = {"enum": [way.value for way in DrainWay if way is not DrainWay.EVACUATE]}

_PLANNED = types.closed(
    {
        "goal": _GOAL,
        "way": _WAY,
        "most": {"type": "integer", "minimum": 1, "maximum": _MOST_MOVES},
        "min_gain": {"type": "number", "minimum": 0, "maximum": 100},
        "aggregate": types.SHORT_TEXT,
        "zone": types.SHORT_TEXT,
    }
)
PLAN = Schema(types.closed({"rebalance": _PLANNED}, ("rebalance",)))
_MOVE = types.closed(
    {"server": {"type": "string", "format": "uuid"}, "source": types.HOST, "target": types.HOST},
    ("server", "source", "target"),
)
_BEGUN = types.closed(
    {
        "goal": _GOAL,
        "way": _WAY,
        "moves": {"type": "array", "items": _MOVE, "minItems": 1, "maxItems": _MOST_MOVES},
        **drains_api.PACE,
    },
    ("moves",),
)
CREATE = Schema(types.closed({"rebalance": _BEGUN}, ("rebalance",)))


def plan(service: ComputeService, call: Call) -> Reply:
    """Propose moves that make hosts more alike, or free; nothing is changed."""
    asked = call.json()["rebalance"]
    goal = _goal(asked)
    if goal is Goal.FREE and "min_gain" in asked:
        raise ComputeError("A gain can be asked for only with the goal spread.")
    wanted = RebalanceRequest(
        goal,
        asked.get("most", MOST),
        asked.get("min_gain", 0.0) / 100,
        _way(asked),
        Scope(asked.get("aggregate"), asked.get("zone")),
    )
    try:
        proposed = service.rebalancer.propose(wanted)
    except PlacementUnavailableError as error:
        raise HttpError(503, f"Placement can't be reached: {error}") from error
    return Reply(body={"rebalance": msgspec.to_builtins(proposed)})


def create(service: ComputeService, call: Call) -> Reply:
    """Have moves made that were proposed; how far they are is told as of a drain."""
    asked = call.json()["rebalance"]
    moves = [WantedMove(move["server"], move["source"], move["target"]) for move in asked["moves"]]
    if len({move.server_uuid for move in moves}) < len(moves):
        raise ComputeError("A server can be moved but once by a rebalance.")
    deadline = drains_api.deadline_of(asked)

    def begin(connection: Connection) -> Json:
        drain = drains.begin_rebalance(
            connection,
            _goal(asked),
            _way(asked),
            moves,
            asked.get("max_parallel", drains_api.MAX_PARALLEL),
            deadline,
            origin_of(call),
        )
        return drains_api.whole(connection, drain)

    return Reply(202, {"drain": service.database.transact(begin)})


def _goal(asked: Json) -> Goal:
    return Goal(asked.get("goal", Goal.SPREAD))


def _way(asked: Json) -> DrainWay:
    return DrainWay(asked.get("way", DrainWay.AUTO))
