"""Writing down what comes over: all of it in one transaction, or nothing."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.aggregates import aggregates as aggregate_records
from moorage.compute.aggregates import outbox
from moorage.compute.flavors import flavors as flavor_records
from moorage.compute.hosts import status_mirror
from moorage.compute.hosts.services import AGENT
from moorage.compute.quotas import quotas as quota_records
from moorage.compute.takeover import comparing, imported_rows
from moorage.compute.takeover.comparing import RowDifference
from moorage.compute.takeover.imported_rows import ImportedRows
from moorage.compute.takeover.nova_source import NovaSource
from moorage.compute.takeover.numbers import NewNumbers, go_on_after
from moorage.compute.takeover.survey import Survey
from moorage.db import revisions
from moorage.db.database import Database
from moorage.db.tables.aggregates import aggregates
from moorage.db.tables.compute import flavors, keypairs, nodes, quotas, server_groups, servers, services
from moorage.db.tables.moves import migrations
from moorage.takeover.errors import TakeoverError
from moorage.takeover.progress import Progress

_NUMBERED = (flavors, keypairs, aggregates, server_groups, services, nodes, servers, migrations)
_EMPTY = (servers, flavors, keypairs, aggregates, server_groups, quotas, nodes)


def require_empty(connection: Connection) -> None:
    """Nothing of another cloud may be here: its numbers, names and limits would be mixed with these."""
    there = []
    for table in _EMPTY:
        count = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
        there += [f"{count} {table.name.replace('_', ' ')}"] if count else []
    agents = sa.select(sa.func.count()).where(services.c.binary == AGENT)
    count = connection.execute(agents).scalar_one()
    there += [f"{count} hosts"] if count else []
    if there:
        raise TakeoverError(
            f"there is something in this cloud already: {', '.join(there)}. "
            "Import into a new database, after `moorage-manage db sync`, and without `seed`. If it is this "
            "Nova's cloud that is here, `moorage-manage compute compare` tells what differs"
        )


def write(database: Database, source: NovaSource, survey: Survey, progress: Progress) -> list[RowDifference]:
    """What differs between the two sides then: if anything does, nothing is written after all."""
    try:
        with database.write() as connection:
            require_empty(connection)
            _write(connection, source, survey, progress)
            found = comparing.compare(connection, source, survey, progress).differences
            if found:
                raise _NotTheSameError(found)
    except _NotTheSameError as error:
        return error.differences
    return []


class _NotTheSameError(Exception):
    """Rolls the transaction back."""

    def __init__(self, differences: list[RowDifference]) -> None:
        super().__init__(f"{len(differences)} rows differ")
        self.differences = differences


def _write(connection: Connection, source: NovaSource, survey: Survey, progress: Progress) -> None:
    numbers = NewNumbers(connection, source.cells)
    for some in imported_rows.of_cloud(survey, numbers):
        _insert(connection, some)
        progress(some.table.name, len(some.rows), len(some.rows))
    done = 0
    for batch in imported_rows.of_servers(source, survey, numbers):
        for some in batch:
            _insert(connection, some)
        done += sum(len(some.rows) for some in batch if some.table is servers)
        progress(servers.name, done, survey.counts["servers"])
    go_on_after(connection, _NUMBERED)
    _tell(connection, survey)


def _insert(connection: Connection, some: ImportedRows) -> None:
    if some.rows:
        connection.execute(sa.insert(some.table), some.rows)


def _tell(connection: Connection, survey: Survey) -> None:
    """Those who keep what they have read, and those who tell Placement which hosts are together, and which
    are disabled: what it says itself may have come another way, or not yet."""
    for subject in (flavor_records.SUBJECT, quota_records.SUBJECT, aggregate_records.SUBJECT):
        revisions.grow(connection, subject)
    outbox.mark(connection, [node.uuid for cell in survey.nodes for node in cell])
    for cell in survey.services:
        for service in cell:
            if service.disabled:
                status_mirror.note(connection, service.host)
