"""The ledger and the hosts in numbers: what is under way, how old it is, what is stuck; who is up, and which
machines are kept out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta

import sqlalchemy as sa
from prometheus_client import Gauge
from sqlalchemy.engine import Connection

from moorage.compute.hosts import liveness, machine_failures
from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.compute.operations import recorded
from moorage.compute.operations.recorded import RecordedOperation, Selection
from moorage.compute.operations.standing import Onlooker, Standing, State
from moorage.core.clock import utcnow
from moorage.core.periodic import Periodic
from moorage.db.database import Database
from moorage.db.tables.compute import services

OPERATIONS = Gauge(
    "moorage_operations", "Operations that have not ended, by how they stand.", ["kind", "step", "state"]
)
STUCK = Gauge("moorage_operations_stuck", "Those of them that are stuck.", ["kind", "step", "why"])
OLDEST = Gauge(
    "moorage_operations_oldest_seconds",
    "Age of the oldest operation that has begun and not ended.",
    ["kind", "step"],
)
HOSTS = Gauge("moorage_hosts", "Hosts by whether their agents are up.", ["state"])
LAG = Gauge("moorage_hosts_lag_seconds", "Time since the last heartbeat of the most silent host that is up.")
QUARANTINED = Gauge("moorage_quarantined_machines", "Machines that are in quarantine.")

INTERVAL = 15.0
_MOST = 20_000
"""Operations that are counted, the oldest ones: with so many, nobody asks for the exact number."""


class LedgerWatch:
    """Every conductor looks, and they all see the same: who adds them up counts twice."""

    def __init__(self, database: Database, onlooker: Onlooker, down_time: int) -> None:
        self._database = database
        self._onlooker = onlooker
        self._down_after = timedelta(seconds=down_time)
        self._shown: dict[Gauge, set[tuple[str, ...]]] = {OPERATIONS: set(), STUCK: set(), OLDEST: set()}
        self._looks = Periodic("watch of the ledger", INTERVAL, self.look)

    def start(self) -> None:
        self._looks.start()

    def stop(self) -> None:
        self._looks.stop()

    def look(self) -> None:
        with self._database.read() as connection:
            found = recorded.listed(connection, Selection(), _MOST)
            up, known = liveness.hosts_up(connection, self._down_after), _hosts(connection)
            kept_out = machine_failures.count_quarantined(connection)
        now = utcnow()
        HOSTS.labels("up").set(len(known.keys() & up))
        HOSTS.labels("down").set(len(known.keys() - up))
        LAG.set(max((_lag(known[host], now) for host in up if host in known), default=0.0))
        QUARANTINED.set(kept_out)
        seen = [(operation, self._onlooker.look(operation, now)) for operation in found]
        standing: Counter[tuple[str, ...]] = Counter()
        stuck: Counter[tuple[str, ...]] = Counter()
        for operation, how in seen:
            standing[operation.kind, operation.step, how.state.value] += 1
            if how.stuck is not None:
                stuck[operation.kind, operation.step, how.stuck.value] += 1
        self._show(OPERATIONS, standing)
        self._show(STUCK, stuck)
        self._show(OLDEST, _ages(seen, now))

    def _show(self, gauge: Gauge, values: Mapping[tuple[str, ...], float]) -> None:
        """What there is none of any more is not shown, rather than for ever as 0."""
        for gone in self._shown[gauge] - values.keys():
            gauge.remove(*gone)
        for labels, value in values.items():
            gauge.labels(*labels).set(value)
        self._shown[gauge] = set(values)


def _hosts(connection: Connection) -> dict[str, datetime | None]:
    """When each was heard of last."""
    query = sa.select(services.c.host, services.c.seen_at).where(services.c.binary == AGENT_BINARY)
    return {row.host: row.seen_at for row in connection.execute(query)}


def _lag(seen_at: datetime | None, now: datetime) -> float:
    return 0.0 if seen_at is None else max(0.0, (now - seen_at).total_seconds())


def _ages(seen: list[tuple[RecordedOperation, Standing]], now: datetime) -> dict[tuple[str, ...], float]:
    """The oldest come first."""
    ages: dict[tuple[str, ...], float] = {}
    for operation, standing in seen:
        if standing.state is not State.PLANNED:
            age = (now - operation.created_at).total_seconds()
            ages.setdefault((operation.kind, operation.step), age)
    return ages
