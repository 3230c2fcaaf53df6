"""A conductor that hears of hosts which share nodes, and what it tells them."""

from __future__ import annotations

import itertools
from typing import Any

import sqlalchemy as sa

from moorage.bus.contract import Heartbeat, Task
from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.conductor.agents.inbox import Inbox
from moorage.conductor.agents.listening import ListeningPeriod
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.db.tables.compute import servers, services
from moorage.deciding.hosts import Hosts
from moorage.ledger import queue

GROUP = {"key": "a", "shard": "", "peers": []}


class Control:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.told: list[tuple[str, Task]] = []
        aggregates = KnownAggregates(database)
        self.inbox = Inbox(database, aggregates, lambda: None, self._cast, listening=_long_vigil())
        self.hosts = Hosts(database, aggregates, down_after=60, default_zone="nova")

    def _cast(self, host: str, tasks: list[Task]) -> None:
        self.told += [(host, task) for task in tasks]

    def beat(self, host: str, facts: dict[str, Any] | None = None, **more: Any) -> list[tuple[str, Task]]:
        self.told.clear()
        self.inbox.on_heartbeat(Heartbeat(host, 3, {"partition": GROUP, **(facts or {})}, **more))
        return list(self.told)

    def server(self, host: str, node: str) -> str:
        uuid = uuids.generate()
        row = dict.fromkeys(("project_id", "user_id", "name", "hostname", "reservation_id", "flavorid"), "x")
        with self.database.write() as connection:
            made = connection.execute(
                sa.insert(servers)
                .values(**row, uuid=uuid, flavor={}, vm_state="active", host=host, node_uuid=node)
                .returning(servers.c.id)
            ).scalar_one()
            queue.enqueue(connection, made, "build", {})
        return uuid

    def die(self, host: str) -> None:
        """As if it had been silent for long."""
        long_ago = utcnow().replace(year=2000)
        statement = sa.update(services).where(services.c.host == host).values(seen_at=long_ago)
        self.database.transact(lambda connection: connection.execute(statement))


def _long_vigil() -> ListeningPeriod:
    """It has listened long enough from the start."""
    seconds = itertools.count()
    vigil = ListeningPeriod(60, lambda: float(next(seconds)))
    for _ in range(70):
        vigil.heard()
    return vigil
