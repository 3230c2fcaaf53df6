"""`/moorage-rebalances`: the few moves that win the most, proposed to operators."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.compute.drains.drain import DrainWay
from moorage.compute.errors import ComputeError
from moorage.compute_api import schema_types as types
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


def plan(service: ComputeService, call: Call) -> Reply:
    """Propose moves that make hosts more alike, or free; nothing is changed."""
    asked = call.json()["rebalance"]
    goal = Goal(asked.get("goal", Goal.SPREAD))
    if goal is Goal.FREE and "min_gain" in asked:
        raise ComputeError("A gain can be asked for only with the goal spread.")
    wanted = RebalanceRequest(
        goal,
        asked.get("most", MOST),
        asked.get("min_gain", 0.0) / 100,
        DrainWay(asked.get("way", DrainWay.AUTO)),
        Scope(asked.get("aggregate"), asked.get("zone")),
    )
    try:
        proposed = service.rebalancer.propose(wanted)
    except PlacementUnavailableError as error:
        raise HttpError(503, f"Placement can't be reached: {error}") from error
    return Reply(body={"rebalance": msgspec.to_builtins(proposed)})
