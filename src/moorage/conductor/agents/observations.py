"""What agents see on their hosts, held against what should be there.

A server's power state follows the machine's. A server that should not be on a host any more is discarded: the
host counted as down when its build went elsewhere or when it was deleted, and has come back.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from prometheus_client import Counter
from sqlalchemy.engine import Connection

from moorage.bus.contract import DISCARD, SET_RATIOS, SET_STATUS, Heartbeat, ObservedServer, Task
from moorage.compute.moves.move import TASKS
from moorage.compute.servers import lost_machines
from moorage.compute.servers import servers as records
from moorage.compute.servers.states import PowerNumber, VmState
from moorage.conductor.ownership import pools
from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.era import Era
from moorage.db.tables.compute import operations, servers
from moorage.db.tables.moves import migrations
from moorage.ledger.operation import FIRST_STEP
from moorage.network import delegation
from moorage.network.contract import ServerPorts
from moorage.scheduler.aggregates import Ratios

LOG = logging.getLogger(__name__)

STRAYS = Counter("moorage_conductor_strays_total", "Servers found on hosts where they should not be.")
_FOLLOWS = {
    (VmState.ACTIVE.value, PowerNumber.SHUT_DOWN): VmState.STOPPED.value,
    (VmState.STOPPED.value, PowerNumber.RUNNING): VmState.ACTIVE.value,
    (VmState.PAUSED.value, PowerNumber.RUNNING): VmState.ACTIVE.value,
    (VmState.PAUSED.value, PowerNumber.SHUT_DOWN): VmState.STOPPED.value,
    (VmState.SUSPENDED.value, PowerNumber.RUNNING): VmState.ACTIVE.value,
}
_LOOK_BACK = 20
"""So many operations of a server are looked through for one that its host was told about."""
_MOST_NAMED = 10
"""Servers that one line of the log names."""
_NEWEST = (
    sa.select(sa.func.max(operations.c.id))
    .where(operations.c.server_id == servers.c.id)
    .correlate(servers)
    .scalar_subquery()
)
"""A server's newest operation."""


ANY_ERA = Era()


class DesiredHostState(NamedTuple):
    """What a host should be."""

    disabled: bool
    ratios: Ratios
    """What its aggregates say."""
    keeps_strays: bool = False
    """Whether servers that should not be there stay: since a restore, the database may be wrong about it."""


def orders(connection: Connection, heartbeat: Heartbeat, wished: DesiredHostState) -> list[Task]:
    """What the agent has to be told, after what it said."""
    return [
        *_status(heartbeat, wished.disabled),
        *_ratios(heartbeat, wished.ratios),
        *_discards(connection, heartbeat, wished),
    ]


def follow(connection: Connection, host: str, seen: Mapping[str, ObservedServer], era: Era = ANY_ERA) -> None:
    """Write down the power states of the host's servers, unless an operation is at them or was since."""
    if not seen:
        return
    query = sa.select(
        servers.c.id,
        servers.c.uuid,
        servers.c.vm_state,
        servers.c.power_state,
        sa.func.coalesce(lost_machines.IS_LOST, sa.false()).label("is_lost"),
    ).where(
        among(connection, servers.c.uuid, list(seen)),
        servers.c.host == host,
        servers.c.task_state.is_(None),
        servers.c.deleted_at.is_(None),
    )
    for row in connection.execute(query.order_by(servers.c.id)).all():
        seen_server = seen[row.uuid]
        if row.is_lost and seen_server.power != PowerNumber.NONE:
            _find_again(connection, row.id, seen_server)
            continue
        vm_state = _FOLLOWS.get((row.vm_state, seen_server.power), row.vm_state)
        changed = (vm_state, seen_server.power) != (row.vm_state, row.power_state)
        if changed and _is_news(seen_server, _last_task(connection, row.id, host, era)):
            connection.execute(
                sa.update(servers)
                .where(servers.c.id == row.id, servers.c.task_state.is_(None))
                .values(vm_state=vm_state, power_state=seen_server.power, updated_at=utcnow())
            )


def _find_again(connection: Connection, server_id: int, seen_server: ObservedServer) -> None:
    """Its machine was thought gone: Ironic's database was restored, or the agent had asked another Ironic."""
    server = records.by_id(connection, [server_id])[server_id]
    LOG.warning("the machine of server %s is back", server.uuid)
    lost_machines.find_again(connection, server)
    state = VmState.STOPPED if seen_server.power == PowerNumber.SHUT_DOWN else VmState.ACTIVE
    records.set_state(connection, server_id, vm_state=state, task_state=None, power_state=seen_server.power)


def _is_news(seen_server: ObservedServer, last: tuple[int, int]) -> bool:
    """Whether the agent had heard of all that it was told when it looked."""
    if not seen_server.attempt:
        return seen_server.operation_id >= last[0]
    return (seen_server.operation_id, seen_server.attempt) >= last


def _last_task(connection: Connection, server_id: int, host: str, era: Era) -> tuple[int, int]:
    """Operation and attempt of what a host was last told to do with a server, in this era: it has forgotten
    what came before.

    A move tells two hosts, and keeps what it told whom; one that found no place has told nobody. Neither has
    an operation that came to its end at its first step.
    """
    told_somebody = sa.or_(
        operations.c.step != FIRST_STEP,
        operations.c.outcome.is_(None),
        operations.c.outcome == "cancelled",
    )
    query = (
        sa.select(operations.c.id, operations.c.attempt, operations.c.data)
        .where(operations.c.server_id == server_id, told_somebody, _is_of(era))
        .order_by(operations.c.id.desc())
        .limit(_LOOK_BACK)
    )
    for operation_id, attempt, data in connection.execute(query):
        told = data.get(TASKS, {}).get(host) if "move" in data else attempt
        if told is not None:
            return operation_id, told
    return 0, 0


def _is_of(era: Era) -> sa.ColumnElement[bool]:
    """Operations that were worked on in this era."""
    if era.began_at is None:
        return sa.true()
    return sa.or_(
        operations.c.id >= era.first_operation,
        operations.c.finished_at > era.began_at,
        operations.c.finished_at.is_(None) & sa.literal(not era.is_held),
    )


def _status(heartbeat: Heartbeat, disabled: bool) -> list[Task]:
    """Tell an agent that has not heard it yet whether its host is disabled."""
    if disabled == bool(heartbeat.facts.get("disabled", False)):
        return []
    return [Task(0, "", SET_STATUS, 0, "", {"disabled": disabled})]


def _ratios(heartbeat: Heartbeat, ratios: Ratios) -> list[Task]:
    """Tell an agent that has not heard them yet, and that would understand."""
    if heartbeat.facts.get("ratios", ratios) == ratios:
        return []
    return [Task(0, "", SET_RATIOS, 0, "", {"ratios": dict(ratios)})]


def _discards(connection: Connection, heartbeat: Heartbeat, wished: DesiredHostState) -> list[Task]:
    """Servers that we know, but not as this host's; one that we don't know at all is not ours to end."""
    host, seen = heartbeat.host, pools.without_reserved(connection, heartbeat)
    present = [uuid for uuid, seen_server in seen.items() if seen_server.power != PowerNumber.NONE]
    if not present:
        return []
    query = (
        sa.select(
            servers.c.uuid,
            servers.c.request,
            servers.c.deleted_at.is_not(None),
            operations.c.id,
            operations.c.attempt,
            operations.c.finished_at.is_not(None),
        )
        .join_from(servers, operations, operations.c.id == _NEWEST)
        .where(
            among(connection, servers.c.uuid, present),
            sa.or_(servers.c.deleted_at.is_not(None), servers.c.host.is_(None), servers.c.host != host),
            ~moving_through(host),
        )
    )
    found = [_discard(_Stray(*row)) for row in connection.execute(query)]
    if found:
        STRAYS.inc(len(found))
        named = ", ".join(task.server_uuid for task in found[:_MOST_NAMED])
        LOG.warning("host %s has %d servers that should not be there any more: %s", host, len(found), named)
    return [] if wished.keeps_strays else found


def moving_through(host: str) -> sa.ColumnElement[bool]:
    """In mid-move both ends have the server, and rightly so."""
    return sa.exists().where(
        migrations.c.server_id == servers.c.id,
        migrations.c.active,
        sa.or_(migrations.c.source_host == host, migrations.c.dest_host == host),
    )


class _Stray(NamedTuple):
    """A server that a host has, but should not have, with the newest operation on it."""

    uuid: str
    request: dict[str, Any]
    is_deleted: bool
    operation_id: int
    attempt: int
    is_finished: bool


def _discard(stray: _Stray) -> Task:
    """Newer than what brought the server there, older than an attempt that may bring it back there.

    Of a deleted server, ports that the agent may have made since then go along.
    """
    attempt = stray.attempt if stray.is_finished else stray.attempt - 1
    payload = {}
    if stray.is_deleted:
        payload = {delegation.HOLDING: msgspec.to_builtins(ServerPorts.of(stray.uuid, stray.request))}
    return Task(stray.operation_id, stray.uuid, DISCARD, attempt, "", payload)
