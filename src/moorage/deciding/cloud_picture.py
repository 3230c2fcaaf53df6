"""Takes the picture of a cloud: a few questions for all hosts and servers, however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.aggregates import aggregates
from moorage.compute.drains import ways
from moorage.compute.drains.drain import DrainWay
from moorage.compute.errors import NotFoundError
from moorage.compute.hosts import node_capabilities
from moorage.compute.moves.migrations import MigrationType
from moorage.db.among import among
from moorage.db.database import Database
from moorage.db.tables.compute import IS_PLACE, nodes, servers
from moorage.deciding import surroundings
from moorage.deciding.hosts import Hosts
from moorage.drivers.capabilities import Capabilities
from moorage.placement.client.contract import PlacementClient
from moorage.scheduler.errors import SchedulingError
from moorage.scheduler.hosts import HostState
from moorage.scheduler.rebalance.picture import MEASURED, CloudPicture, LoadedHost, MovableServer
from moorage.scheduler.request import from_flavor

_SERVERS = sa.select(
    servers.c.id,
    servers.c.uuid,
    servers.c.name,
    servers.c.node_uuid,
    servers.c.vm_state,
    servers.c.task_state,
    servers.c.locked_by,
    servers.c.project_id,
    servers.c.requested_zone,
    servers.c.flavor,
    servers.c.request,
).where(servers.c.deleted_at.is_(None))


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the cloud that is looked at; all of it if neither is named."""

    aggregate: str | None = None
    zone: str | None = None


EVERYWHERE = Scope()


class CloudPictures:
    def __init__(self, database: Database, hosts: Hosts, placement: PlacementClient) -> None:
        self._database = database
        self._hosts = hosts
        self._placement = placement

    def take(self, scope: Scope, way: DrainWay) -> CloudPicture:
        """The hosts that take servers and can give them away, and what may leave them in that way."""
        with self._database.read() as connection:
            able = _able(connection)
            inside = _inside(connection, scope)
        states = {
            uuid: state
            for uuid, state in self._hosts.states(able).items()
            if state.up and not state.disabled and (inside is None or state.host in inside)
            if scope.zone is None or state.zone == scope.zone
        }
        if scope.zone is not None and not states:
            raise NotFoundError(f"No host of availability zone {scope.zone} could be found.")
        usages = self._placement.tree_usages(list(states))
        measured = {uuid for uuid, usage in usages.items() if any(map(usage.capacity.get, MEASURED))}
        with self._database.read() as connection:
            query = _SERVERS.where(among(connection, servers.c.node_uuid, measured)).order_by(servers.c.id)
            rows = connection.execute(query).all()
        counts = Counter(row.node_uuid for row in rows)
        hosts = [
            LoadedHost(states[uuid].host, uuid, usages[uuid].capacity, usages[uuid].used, counts[uuid])
            for uuid in sorted(measured, key=lambda uuid: states[uuid].host)
        ]
        return CloudPicture(hosts, list(_movable(rows, states, able, way)))


def _able(connection: Connection) -> dict[str, Capabilities]:
    """The nodes whose servers can leave them: a machine's does not."""
    query = sa.select(nodes.c.uuid, nodes.c.hypervisor_type, nodes.c.facts).where(IS_PLACE)
    read = {uuid: node_capabilities.read(kind, facts) for uuid, kind, facts in connection.execute(query)}
    return {uuid: able for uuid, able in read.items() if able.migrate and not able.pool}


def _inside(connection: Connection, scope: Scope) -> Collection[str] | None:
    """The hosts of the aggregate; None if there is none to be in."""
    if scope.aggregate is None:
        return None
    for aggregate in aggregates.listed(connection):
        if aggregate.name == scope.aggregate:
            return set(aggregate.hosts)
    raise NotFoundError(f"Aggregate {scope.aggregate} could not be found.")


def _movable(
    rows: Iterable[Any],
    states: Mapping[str, HostState],
    able: Mapping[str, Capabilities],
    way: DrainWay,
) -> Iterable[MovableServer]:
    """What nobody has a hand on, and nobody has tied down."""
    for row in rows:
        move = ways.move_of(row.vm_state, able[row.node_uuid], way)
        if move is None or row.task_state is not None or row.locked_by is not None or _is_pinned(row.request):
            continue
        needs = _needs(*_booted(row.flavor, row.request))
        if needs is not None:
            yield _server(row, states[row.node_uuid], move, needs)


def _server(row: Any, state: HostState, move: MigrationType, needs: Mapping[str, int]) -> MovableServer:
    return MovableServer(
        id=row.id,
        uuid=row.uuid,
        name=row.name,
        flavor=row.flavor.get("name") or row.flavor["id"],
        node_uuid=row.node_uuid,
        needs=needs,
        move=move.value,
        kind=_kind(row, state.cell),
    )


def _is_pinned(asked: Mapping[str, Any]) -> bool:
    """Somebody has named its host, its node or its machine when it was made."""
    return surroundings.target_of(asked) != (None, None) or bool(surroundings.machines_of(asked))


def _booted(flavor: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[bytes, bytes]:
    properties = (asked.get("image") or {}).get("properties") or {}
    return _told(flavor), _told(properties)


def _kind(row: Any, cell: str) -> bytes:
    """All that the scheduler goes by: what it says of one server, it says of all of the kind."""
    asked = row.request
    needs = [port["needs"] for port in asked.get("ports", ()) if port.get("needs")]
    about = (asked.get("scheduler_hints"), asked.get("group"), needs)
    return _told((_booted(row.flavor, asked), about, row.project_id, row.requested_zone, cell))


def _told(value: Any) -> bytes:
    return msgspec.msgpack.encode(value, order="deterministic")


@lru_cache(maxsize=4096)
def _needs(flavor: bytes, properties: bytes) -> Mapping[str, int] | None:
    """What it takes of a host; None of a server whose flavor makes no sense any more."""
    try:
        request = from_flavor("", msgspec.msgpack.decode(flavor), msgspec.msgpack.decode(properties))
    except SchedulingError:
        return None
    total: Counter[str] = Counter()
    for group in request.groups:
        total.update(group.resources)
    return {name: total[name] for name in MEASURED if total[name]}
