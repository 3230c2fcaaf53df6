"""Purging: what is over for long enough goes, in small transactions, each of which does no harm by itself.

A deleted server goes with all that is its: actions, operations, traces, migrations. Of a server that lives,
its newest operation stays, since attempts are counted on from it, and its newest trace, for `explain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from functools import partial

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.tables.audits import audit_findings, audits
from moorage.db.tables.compute import actions, operations, servers, traces
from moorage.db.tables.drains import drains
from moorage.db.tables.machines import machine_failures
from moorage.db.tables.moves import migrations

BATCH = 200
"""Rows that go in one transaction: locks are short, and others get their turn in between."""


class Remains(StrEnum):
    """What can be purged; in this order."""

    SERVERS = "servers"
    OPERATIONS = "operations"
    TRACES = "traces"
    ACTIONS = "actions"
    MIGRATIONS = "migrations"
    AUDITS = "audits"
    FINDINGS = "audit_findings"
    MACHINE_FAILURES = "machine_failures"
    DRAINS = "drains"


def count(connection: Connection, what: Remains, before: datetime) -> int:
    """How many rows would go; of a server's, only those of servers that stay."""
    found = _FOUND[what](before)
    if what in _OF_SERVERS:
        found = found.where(_KEYS[what].table.c.server_id.not_in(_servers(before)))
    return int(connection.execute(sa.select(sa.func.count()).select_from(found.subquery())).scalar_one())


def purge(connection: Connection, what: Remains, before: datetime) -> int:
    """A batch of it goes; how many rows did. Fewer than a batch: there are no more."""
    found = connection.execute(_FOUND[what](before).limit(BATCH)).scalars().all()
    if not found:
        return 0
    key = _KEYS[what]
    connection.execute(sa.delete(key.table).where(among(connection, key, found)))
    return len(found)


def batches(
    transact: Callable[[Callable[[Connection], int]], int], before: datetime
) -> Iterator[tuple[Remains, int]]:
    """All that is over, batch by batch: what it was, and how many rows."""
    for what in Remains:
        gone = BATCH
        while gone == BATCH:
            gone = transact(partial(purge, what=what, before=before))
            if gone:
                yield what, gone


def _servers(before: datetime) -> sa.Select[tuple[int]]:
    """Not as long as something is to be done for one, or somebody may still be at it."""
    under_way = sa.exists().where(
        operations.c.server_id == servers.c.id,
        sa.or_(operations.c.finished_at.is_(None), operations.c.leased_until > utcnow()),
    )
    moving = sa.exists().where(migrations.c.server_id == servers.c.id, migrations.c.active)
    return sa.select(servers.c.id).where(servers.c.deleted_at < before, ~under_way, ~moving)


def _operations(before: datetime) -> sa.Select[tuple[int]]:
    newer = operations.alias("newer")
    overtaken = sa.exists().where(newer.c.server_id == operations.c.server_id, newer.c.id > operations.c.id)
    idle = sa.or_(operations.c.leased_until.is_(None), operations.c.leased_until < utcnow())
    return sa.select(operations.c.id).where(operations.c.finished_at < before, idle, overtaken)


def _traces(before: datetime) -> sa.Select[tuple[int]]:
    newer = traces.alias("newer")
    overtaken = sa.exists().where(newer.c.server_id == traces.c.server_id, newer.c.id > traces.c.id)
    return sa.select(traces.c.id).where(traces.c.created_at < before, overtaken)


def _actions(before: datetime) -> sa.Select[tuple[int]]:
    """Of each server how it came to be stays, what was done to it last, and what is being done."""
    newer = actions.alias("newer")
    overtaken = sa.exists().where(newer.c.server_id == actions.c.server_id, newer.c.id > actions.c.id)
    needed = sa.exists().where(
        operations.c.server_id == actions.c.server_id,
        operations.c.action_id == actions.c.id,
        operations.c.finished_at.is_(None),
    )
    return sa.select(actions.c.id).where(
        actions.c.updated_at < before, actions.c.action != "create", overtaken, ~needed
    )


def _migrations(before: datetime) -> sa.Select[tuple[int]]:
    return sa.select(migrations.c.id).where(migrations.c.updated_at < before, ~migrations.c.active)


def _audits(before: datetime) -> sa.Select[tuple[int]]:
    return sa.select(audits.c.id).where(audits.c.finished_at < before)


def _findings(before: datetime) -> sa.Select[tuple[int]]:
    return sa.select(audit_findings.c.id).where(audit_findings.c.ended_at < before)


def _machine_failures(before: datetime) -> sa.Select[tuple[str]]:
    return sa.select(machine_failures.c.uuid).where(machine_failures.c.failed_at < before)


def _drains(before: datetime) -> sa.Select[tuple[int]]:
    return sa.select(drains.c.id).where(drains.c.finished_at < before)


_FOUND: Mapping[Remains, Callable[[datetime], sa.Select[tuple[int]] | sa.Select[tuple[str]]]] = {
    Remains.SERVERS: _servers,
    Remains.OPERATIONS: _operations,
    Remains.TRACES: _traces,
    Remains.ACTIONS: _actions,
    Remains.MIGRATIONS: _migrations,
    Remains.AUDITS: _audits,
    Remains.FINDINGS: _findings,
    Remains.MACHINE_FAILURES: _machine_failures,
    Remains.DRAINS: _drains,
}
_KEYS: Mapping[Remains, sa.Column[int] | sa.Column[str]] = {
    Remains.SERVERS: servers.c.id,
    Remains.OPERATIONS: operations.c.id,
    Remains.TRACES: traces.c.id,
    Remains.ACTIONS: actions.c.id,
    Remains.MIGRATIONS: migrations.c.id,
    Remains.AUDITS: audits.c.id,
    Remains.FINDINGS: audit_findings.c.id,
    Remains.MACHINE_FAILURES: machine_failures.c.uuid,
    Remains.DRAINS: drains.c.id,
}
_OF_SERVERS = (Remains.OPERATIONS, Remains.TRACES, Remains.ACTIONS, Remains.MIGRATIONS)
"""Which go along with their servers."""
