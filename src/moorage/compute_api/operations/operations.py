"""`/moorage-operations`: what is under way, what is stuck and why; have it tried again, or cancelled."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from moorage.compute.errors import NotFoundError
from moorage.compute.moves import migrations
from moorage.compute.operations import recorded, steering
from moorage.compute.operations.recorded import RecordedOperation, Selection
from moorage.compute.operations.standing import Standing, State, Stuck
from moorage.compute.servers import actions, servers
from moorage.compute_api import schema_types as types
from moorage.compute_api.service import ComputeService
from moorage.compute_api.times import plain
from moorage.core.clock import utcnow
from moorage.core.numbers import row_number, whole
from moorage.http.call import Call, Query
from moorage.http.reply import Reply
from moorage.http.schema import Schema
from moorage.placement.client.contract import PlacementUnavailableError

_MOST_READ = 20_000
"""Operations that are looked at for one answer: the oldest ones, if there are more."""

INDEX = Schema(
    types.once(
        {
            "kind": types.SHORT_TEXT,
            "step": types.SHORT_TEXT,
            "host": types.SHORT_TEXT,
            "server_id": {"type": "string", "format": "uuid"},
            "state": {"enum": [state.value for state in State]},
            "stuck": types.BOOLEAN,
            "older_than": types.LIMIT,
            "limit": types.LIMIT,
        }
    )
)
ACT = Schema(
    types.closed(
        {
            "retry": {"type": "null"},
            "cancel": {
                "oneOf": [{"type": "null"}, types.closed({"reason": types.NAME})],
            },
        },
        minProperties=1,
        maxProperties=1,
    )
)


def index(service: ComputeService, call: Call) -> Reply:
    """List operations that have not ended, those first that are stuck; or all of a server's."""
    query = call.checked_query()
    selection = Selection(
        query.get("kind"), query.get("step"), query.get("server_id"), query.get("state") == State.ENDED
    )
    with service.database.read() as connection:
        found = recorded.listed(connection, selection, _MOST_READ + 1)
    now = utcnow()
    seen = [(operation, service.onlooker.look(operation, now)) for operation in found[:_MOST_READ]]
    chosen = [one for one in seen if _wanted(*one, query, now)]
    chosen.sort(key=lambda one: (one[1].stuck is None, one[0].id))
    limit = min(whole(query.get("limit") or "") or service.settings.max_limit, service.settings.max_limit)
    return Reply(
        body={
            "operations": [_summary(*one) for one in chosen[:limit]],
            "count": len(chosen),
            "stuck": sum(standing.stuck is not None for _, standing in chosen),
            "complete": len(found) <= _MOST_READ and len(chosen) <= limit,
        }
    )


def _wanted(operation: RecordedOperation, standing: Standing, query: Query, now: datetime) -> bool:
    host, state, age = query.get("host"), query.get("state"), whole(query.get("older_than") or "") or 0
    stuck = query.get("stuck")
    return (
        host in (None, standing.host, operation.host)
        and state in (None, standing.state)
        and (stuck is None or types.as_boolean(stuck) == (standing.stuck is not None))
        and (not age or now - operation.created_at > timedelta(seconds=min(age, _LONGEST_AGE)))
    )


_LONGEST_AGE = 10**9


def show(service: ComputeService, call: Call) -> Reply:
    """Show an operation: its steps, what it holds and waits for, who is at it, and its request."""
    with service.database.read() as connection:
        operation = recorded.find(connection, _id(call))
        server = servers.by_id(connection, [operation.server_id])[operation.server_id]
        request_id = operation.request_id
        events = [] if request_id is None else actions.find(connection, server.id, request_id).events
        move = migrations.active_of(connection, [operation.server_id]).get(operation.server_id)
    consumers = [server.uuid, *([] if move is None else [move.uuid])]
    held: dict[str, Any] = {
        "host": server.host,
        "node": server.node,
        "ports": [port["id"] for port in server.request.get("ports", [])],
        "migration": None if move is None else move.uuid,
    }
    try:
        claims = {consumer: service.placement.allocations(consumer)[0] for consumer in consumers}
        held["allocations"] = {consumer: claim for consumer, claim in claims.items() if claim}
    except PlacementUnavailableError as error:
        held["allocations"] = None
        held["trouble"] = f"Placement can't be reached: {error}"
    onlooker = service.onlooker
    step = onlooker.step(operation)
    refusal = "this release does not know its kind" if step is None else step.cancel.refusal
    body = {
        **_summary(operation, onlooker.look(operation, utcnow())),
        "steps": [one.name for one in onlooker.steps(operation)],
        "cancel_refusal": refusal if operation.finished_at is None else "it has ended",
        "holds": held,
        "events": events,
    }
    return Reply(body={"operation": body})


def act(service: ComputeService, call: Call) -> Reply:
    """Have an operation tried now, or cancelled."""
    operation_id = _id(call)
    ((action, wish),) = call.json().items()
    if action == "retry":
        service.database.transact(lambda connection: steering.retry(connection, operation_id))
    else:
        said = (wish or {}).get("reason")
        reason = steering.CANCELLED if said is None else f"An administrator cancelled it: {said}"
        service.database.transact(
            lambda connection: steering.cancel(connection, service.onlooker, operation_id, reason)
        )
    service.wake()
    with service.database.read() as connection:
        operation = recorded.find(connection, operation_id)
    return Reply(202, {"operation": _summary(operation, service.onlooker.look(operation, utcnow()))})


def _id(call: Call) -> int:
    given = call.params["operation_id"]
    number = row_number(given)
    if number is None:
        raise NotFoundError(f"Operation {given} could not be found.")
    return number


def _summary(operation: RecordedOperation, standing: Standing) -> dict[str, Any]:
    stuck: Stuck | None = standing.stuck
    return {
        "id": operation.id,
        "kind": operation.kind,
        "step": operation.step,
        "step_since": plain(standing.since),
        "state": standing.state.value,
        "stuck": None if stuck is None else stuck.value,
        "sentence": standing.sentence,
        "host": standing.host,
        "server_id": operation.server_uuid,
        "server_name": operation.server_name,
        "project_id": operation.project_id,
        "attempt": operation.attempt,
        "tries": operation.tries,
        "due_at": plain(operation.due_at),
        "leased_by": operation.lease if standing.state is State.WORKING else None,
        "leased_until": plain(operation.leased_until) if standing.state is State.WORKING else None,
        "cancel_reason": operation.cancel_reason,
        "request_id": operation.request_id,
        "created_at": plain(operation.created_at),
        "finished_at": plain(operation.finished_at),
        "outcome": operation.outcome,
        "error": operation.error,
    }
