"""A fleet in one process, and decisions about servers on it: for one certain host, and for any.

Each host has one node; but one more, the `metal` host, may have as many as you like.
"""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from moorage.compute.aggregates import outbox
from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.compute.aggregates.mirror import Mirror
from moorage.core import config
from moorage.core.clock import utcnow
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.options import OPTIONS as DATABASE_OPTIONS
from moorage.db.tables.compute import nodes, services
from moorage.deciding.decider import Decider, HostSearch
from moorage.deciding.hosts import Hosts
from moorage.deciding.subject import Subject
from moorage.placement.client.contract import Candidates, ReportedProvider
from moorage.placement.client.local import LocalPlacement
from moorage.placement.options import OPTIONS as PLACEMENT_OPTIONS
from moorage.placement.service import PlacementService
from moorage.scheduler.settings import SchedulerSettings

METAL = "metal"
MACHINE = {"CUSTOM_METAL": {"total": 1}}
MACHINE_FLAVOR = {
    "id": "2",
    "name": "metal",
    "vcpus": 1,
    "ram": 512,
    "disk": 1,
    "extra_specs": {
        "resources:VCPU": "0",
        "resources:MEMORY_MB": "0",
        "resources:DISK_GB": "0",
        "resources:CUSTOM_METAL": "1",
    },
}
INVENTORIES = {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 262_144}, "DISK_GB": {"total": 4_096}}
FLAVOR = {"id": "1", "name": "m1.tiny", "vcpus": 1, "ram": 512, "disk": 1, "extra_specs": {}}


WARMING_UP = 5


@dataclass(frozen=True)
class Timing:
    """Of one decision, in milliseconds."""

    p50: float
    p95: float
    processor: float
    """The mean of the processor time, which a busy machine does not falsify."""
    questions: float
    """To Placement, for candidates: the mean."""


class Fleet:
    def __init__(self, directory: Path, size: int, machines: int = 0) -> None:
        conf = config.read(
            [],
            [DATABASE_OPTIONS, PLACEMENT_OPTIONS],
            {"database.connection": f"sqlite:///{directory / 'bench.sqlite'}"},
        )
        migrate.sync(engine.from_conf(conf))
        self._placement = PlacementService.from_conf(conf)
        self._placement.start()
        self.hosts = [f"host-{number}" for number in range(size)]
        database, client = self._placement.database, Questions(self._placement)
        self.placement = client
        self._fill(database)
        if machines:
            self._fill_metal(database, machines)
        aggregates = KnownAggregates(database)
        known = Hosts(database, aggregates, down_after=86_400, default_zone="nova")
        self._decider = Decider(database, known, aggregates, client, SchedulerSettings(), default_zone="nova")

    def _fill(self, database: Database) -> None:
        """As agents would have reported it."""
        made = {host: str(uuid.uuid4()) for host in self.hosts}
        self.placement.report([ReportedProvider(made[host], host, INVENTORIES) for host in self.hosts])
        service = {"binary": "nova-compute", "version": 2, "facts": {}, "seen_at": utcnow()}
        with database.write() as connection:
            connection.execute(
                sa.insert(services),
                [{"uuid": str(uuid.uuid4()), "host": host, **service} for host in self.hosts],
            )
            connection.execute(
                sa.insert(nodes),
                [
                    {"uuid": made[host], "name": host, "host": host, "hypervisor_type": "fake", "facts": {}}
                    for host in self.hosts
                ],
            )

    def _fill_metal(self, database: Database, count: int) -> None:
        """One host of so many nodes, which the mirror tells Placement of."""
        uuids = [str(uuid.uuid4()) for _ in range(count)]
        node = {"host": METAL, "hypervisor_type": "fake", "facts": {}}
        self.placement.report([ReportedProvider(each, each, MACHINE) for each in uuids])
        with database.write() as connection:
            service = {"uuid": str(uuid.uuid4()), "binary": "nova-compute", "version": 2, "facts": {}}
            connection.execute(sa.insert(services).values(**service, host=METAL, seen_at=utcnow()))
            connection.execute(sa.insert(nodes), [{"uuid": each, "name": each, **node} for each in uuids])
            outbox.mark(connection, uuids)
        assert Mirror(database, self.placement).drain()

    def close(self) -> None:
        self._placement.stop()

    def decisions(self, count: int, *, targeted: bool) -> Timing:
        """Each alone, for another host."""
        hosts = [self.hosts[(number * 7919) % len(self.hosts)] for number in range(-WARMING_UP, count)]
        return self._timed([_server(host if targeted else None) for host in hosts])

    def metal_decisions(self, count: int) -> Timing:
        """Each alone, for the one host of many nodes."""
        return self._timed([_server(METAL, MACHINE_FLAVOR) for _ in range(-WARMING_UP, count)])

    def _timed(self, servers: list[Subject]) -> Timing:
        """The first few warm up and don't count."""
        took: list[float] = []
        processor = questions = 0.0
        for number, server in enumerate(servers, -WARMING_UP):
            search = HostSearch(server)
            asked, began, began_processor = self.placement.asked, time.perf_counter(), time.process_time()
            self._decider.decide([search])
            if number >= 0:
                took.append(1000 * (time.perf_counter() - began))
                processor += 1000 * (time.process_time() - began_processor)
                questions += self.placement.asked - asked
            assert search.choices, search.refusal
            host = server.request["host"]
            assert host is None or search.choices[0].place.host == host
        quantiles = statistics.quantiles(took, n=20)
        return Timing(statistics.median(took), quantiles[-1], processor / len(took), questions / len(took))


class Questions(LocalPlacement):
    """Counts them."""

    asked = 0

    def candidates(self, query: Sequence[tuple[str, str]]) -> Candidates:
        self.asked += 1
        return super().candidates(query)


def _server(host: str | None, flavor: Mapping[str, Any] = FLAVOR) -> Subject:
    return Subject(str(uuid.uuid4()), "p", "u", flavor, {"host": host, "networks": "none"})
