"""`/os-aggregates`: named groups of hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.aggregates import aggregates
from moorage.compute.aggregates.aggregates import Aggregate, AggregateNotFound
from moorage.compute_api.endpoint import RULE
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.service import ComputeService
from moorage.compute_api.times import plain
from moorage.core.numbers import row_number
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, empty


def index(service: ComputeService, call: Call) -> Reply:
    """List host aggregates."""
    call.checked_query()
    with service.database.snapshot() as connection:
        found = aggregates.listed(connection)
    return Reply(body={"aggregates": [_body(call, aggregate) for aggregate in found]})


def show(service: ComputeService, call: Call) -> Reply:
    """Show a host aggregate."""
    call.checked_query()
    with service.database.snapshot() as connection:
        return _reply(call, aggregates.find(connection, _id(call)))


def create(service: ComputeService, call: Call) -> Reply:
    """Create a host aggregate."""
    asked = call.json()["aggregate"]

    def add(connection: Connection) -> Aggregate:
        return aggregates.create(connection, asked["name"], asked.get("availability_zone"))

    body = _body(call, service.database.transact(add))
    return Reply(body={"aggregate": {key: body[key] for key in body.keys() - {"hosts", "metadata"}}})


def update(service: ComputeService, call: Call) -> Reply:
    """Rename a host aggregate, or make it another availability zone."""
    asked = call.json()["aggregate"]
    name = asked["name"].strip() if "name" in asked else None
    metadata = {key: value for key, value in asked.items() if key == aggregates.ZONE}
    aggregate_id = _id(call)

    def change(connection: Connection) -> Aggregate:
        return aggregates.change(connection, aggregate_id, name=name, metadata=metadata)

    return _reply(call, service.database.transact(change))


def delete(service: ComputeService, call: Call) -> Reply:
    """Delete a host aggregate that has no hosts."""
    aggregate_id = _id(call)
    deleted = service.database.transact(lambda connection: aggregates.delete(connection, aggregate_id))
    service.mirror.follow_deletion(deleted.uuid)
    return empty(200)


def act(service: ComputeService, call: Call) -> Reply:
    """Add a host to an aggregate, remove one, or set the aggregate's metadata."""
    ((action, asked),) = call.json().items()
    call.authorize(f"{RULE}os-aggregates:{action}", {})
    return _reply(call, _ACTIONS[action](service, _id(call), asked))


def _add_host(service: ComputeService, aggregate_id: int, asked: dict[str, Any]) -> Aggregate:
    host = asked["host"]
    changed = service.database.transact(
        lambda connection: aggregates.add_host(connection, aggregate_id, host)
    )
    service.mirror.follow_host(host, "add_host")
    return changed


def _remove_host(service: ComputeService, aggregate_id: int, asked: dict[str, Any]) -> Aggregate:
    host = asked["host"]
    changed = service.database.transact(
        lambda connection: aggregates.remove_host(connection, aggregate_id, host)
    )
    service.mirror.follow_host(host, "remove_host")
    return changed


def _set_metadata(service: ComputeService, aggregate_id: int, asked: dict[str, Any]) -> Aggregate:
    return service.database.transact(
        lambda connection: aggregates.change(
            connection, aggregate_id, metadata=asked["metadata"], what="metadata of "
        )
    )


_ACTIONS: dict[str, Callable[[ComputeService, int, dict[str, Any]], Aggregate]] = {
    "add_host": _add_host,
    "remove_host": _remove_host,
    "set_metadata": _set_metadata,
}


def cache_images(service: ComputeService, call: Call) -> Reply:
    """Ask the hosts of an aggregate to fetch images early: taken note of, since no driver keeps images."""
    asked = [image["id"] for image in call.json()["cache"]]
    if len(set(asked)) != len(asked):
        raise HttpError(400, "Duplicate images in request")
    with service.database.snapshot() as connection:
        aggregates.find(connection, _id(call))
    return empty(202)


def _id(call: Call) -> int:
    given = call.params["aggregate_id"]
    number = row_number(given)
    if number is not None:
        return number
    try:
        int(given)
    except ValueError as error:
        raise HttpError(400, "Invalid input received: id must be an integer") from error
    raise AggregateNotFound(given)


def _reply(call: Call, aggregate: Aggregate) -> Reply:
    return Reply(body={"aggregate": _body(call, aggregate)})


def _body(call: Call, aggregate: Aggregate) -> dict[str, Any]:
    body = {
        "id": aggregate.id,
        "name": aggregate.name,
        "availability_zone": aggregate.zone,
        "hosts": aggregate.hosts,
        "metadata": aggregate.metadata,
        "created_at": plain(aggregate.created_at),
        "updated_at": plain(aggregate.updated_at),
        "deleted": False,
        "deleted_at": None,
    }
    return {**body, "uuid": aggregate.uuid} if call.version >= Microversion.AGGREGATE_UUIDS else body
