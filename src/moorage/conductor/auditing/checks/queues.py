"""Queues that the broker keeps for hosts, held against the hosts that there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.bus.host_queues import HostQueue
from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.conductor.auditing.contract import AuditCheck, Portion
from moorage.db.tables.compute import nodes, servers, services
from moorage.db.tables.moves import migrations


class QueuesCheck(AuditCheck):
    name = CheckName.QUEUES
    compares = "queues of the message bus, and hosts"

    def look(self) -> Iterator[Portion]:
        """Of all hosts that the broker names, if it can be asked; of those that the database remembers."""
        if self._tools.queues is None:
            return
        listed = self._tools.queues.hosts() or ()
        with self._tools.database.read() as connection:
            gone = sorted((set(listed) | _remembered(connection)) - _present(connection))
        for done, host in enumerate(gone, 1):
            found = self._tools.queues.of_host(host)
            yield Portion([Suspect(one.name, {"host": host}) for one in found], done, len(gone))

    def judge(self, suspect: Suspect) -> Drift | None:
        """First the queue, then the host: an agent listens before it is heard of."""
        host, queue = suspect.facts["host"], self._queue(suspect)
        if queue is None or queue.consumers:
            return None
        with self._tools.database.read() as connection:
            if host in _present(connection):
                return None
            is_ours = host in _remembered(connection)
        waiting = f" with {queue.messages} messages" if queue.messages else ""
        return Drift(
            suspect=suspect,
            sentence=f"queue {queue.name}{waiting} is for host {host}, which is gone",
            remedy="delete it",
            safe=is_ours,
            host=host,
        )

    def _queue(self, suspect: Suspect) -> HostQueue | None:
        if self._tools.queues is None:
            return None
        found = self._tools.queues.of_host(suspect.facts["host"])
        return next((one for one in found if one.name == suspect.subject), None)

    def repair(self, drift: Drift) -> None:
        """The broker deletes it only if still nobody listens."""
        queue = self._queue(drift.suspect)
        if queue is not None and self._tools.queues is not None:
            self._tools.queues.remove(queue)


def _present(connection: Connection) -> set[str]:
    """Hosts that something is to be told to, or that may come back for what is theirs."""
    ends = (migrations.c.source_host, migrations.c.dest_host)
    told = [
        sa.select(services.c.host),
        sa.select(nodes.c.host),
        sa.select(servers.c.host).where(servers.c.deleted_at.is_(None)),
        *(sa.select(end).where(migrations.c.active) for end in ends),
    ]
    return _named(connection, told)


def _remembered(connection: Connection) -> set[str]:
    """Hosts that servers were on or moved between, as long as that is kept."""
    return _named(
        connection,
        [
            sa.select(servers.c.host),
            sa.select(migrations.c.source_host),
            sa.select(migrations.c.dest_host),
        ],
    )


def _named(connection: Connection, queries: list[sa.Select[Any]]) -> set[str]:
    return {host for host in connection.execute(sa.union(*queries)).scalars() if host}
