"""`/moorage-plan`: where servers would go, and why not elsewhere, without making any."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from moorage.compute.errors import ComputeError, NotFoundError
from moorage.compute.servers import creation, server_groups
from moorage.compute.servers.creation import CreationRequest, ServerTemplate
from moorage.compute_api import schema_types as types
from moorage.compute_api.endpoint import owner_of
from moorage.compute_api.servers import server_body
from moorage.compute_api.servers.server_schemas import HINTS
from moorage.compute_api.servers.servers import origin_of
from moorage.compute_api.service import ComputeService
from moorage.deciding.subject import Subject
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply
from moorage.http.schema import Schema
from moorage.placement.client.contract import PlacementUnavailableError

MOST = 1000
"""Servers of one plan."""

CREATE = Schema(
    types.closed(
        {
            "plan": types.closed(
                {
                    "flavorRef": {"type": ["string", "integer"], "minLength": 1},
                    "imageRef": {"type": "string", "format": "uuid"},
                    "count": {"type": "integer", "minimum": 1, "maximum": MOST},
                    "availability_zone": types.NAME,
                    "host": types.HOST,
                    "hypervisor_hostname": types.HOST,
                    "project_id": types.SHORT_TEXT,
                },
                ("flavorRef", "imageRef"),
            ),
            "os:scheduler_hints": HINTS,
        },
        ("plan",),
    )
)


def create(service: ComputeService, call: Call) -> Reply:
    """Show where servers would go if they were asked for now."""
    body = call.json()
    asked = body["plan"]
    origin = origin_of(call)
    origin = replace(origin, project_id=asked.get("project_id", origin.project_id))
    call.admit(owner_of(origin))
    count = asked.get("count", 1)
    wanted, bounds = server_body.read(service, call, _as_request(asked, body, count))
    _check_group(service, wanted, origin.project_id)
    _, rows = creation.rows_of(CreationRequest(origin, wanted, bounds), count)
    try:
        plan = service.planner.plan([Subject.of_row(row) for row in rows])
    except PlacementUnavailableError as error:
        raise HttpError(503, f"Placement can't be reached: {error}") from error
    return Reply(body={"plan": msgspec.to_builtins(plan)})


def _as_request(asked: dict[str, Any], body: dict[str, Any], count: int) -> dict[str, Any]:
    """The request for servers that the plan is about, so that it is read and refused as one."""
    server = {name: value for name, value in asked.items() if name not in ("count", "project_id")}
    server |= {"name": "plan", "networks": "none", "min_count": count}
    return {"server": server, "os:scheduler_hints": body.get("os:scheduler_hints", {})}


def _check_group(service: ComputeService, wanted: ServerTemplate, project_id: str) -> None:
    """What a request for servers is refused for only when it is written down."""
    if wanted.group is None:
        return
    with service.database.read() as connection:
        try:
            group = server_groups.find(connection, wanted.group)
        except NotFoundError as error:
            raise ComputeError(str(error)) from error
    if group.project_id != project_id:
        raise ComputeError(f"Instance group {wanted.group} could not be found.")
