"""A fleet in one process, and decisions about servers on it: for one certain host, and for any."""

from __future__ import annotations

import statistics
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.core import config
from moorage.core.clock import utcnow
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.options import OPTIONS as DATABASE_OPTIONS
from moorage.db.tables.compute import nodes, services
from moorage.deciding.decider import Decider, HostSearch
from moorage.deciding.hosts import Hosts
from moorage.deciding.subject import Subject
from moorage.placement.client.contract import ReportedProvider
from moorage.placement.client.local import LocalPlacement
from moorage.placement.options import OPTIONS as PLACEMENT_OPTIONS
from moorage.placement.service import PlacementService
from moorage.scheduler.settings import SchedulerSettings

INVENTORIES = {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 262_144}, "DISK_GB": {"total": 4_096}}
FLAVOR = {"id": "1", "name": "m1.tiny", "vcpus": 1, "ram": 512, "disk": 1, "extra_specs": {}}


@dataclass(frozen=True)
class Timing:
    """Of one decision, in milliseconds."""

    p50: float
    p95: float
    processor: float
    """The mean of the processor time, which a busy machine does not falsify."""


class Fleet:
    def __init__(self, directory: Path, size: int) -> None:
        conf = config.read(
            [],
            [DATABASE_OPTIONS, PLACEMENT_OPTIONS],
            {"database.connection": f"sqlite:///{directory / 'bench.sqlite'}"},
        )
        migrate.sync(engine.from_conf(conf))
        self._placement = PlacementService.from_conf(conf)
        self._placement.start()
        self.hosts = [f"host-{number}" for number in range(size)]
        self._fill(self._placement.database)
        database, client = self._placement.database, LocalPlacement(self._placement)
        aggregates = KnownAggregates(database)
        known = Hosts(database, aggregates, down_after=86_400, default_zone="nova")
        self._decider = Decider(database, known, aggregates, client, SchedulerSettings(), default_zone="nova")

    def _fill(self, database: Database) -> None:
        """As agents would have reported it."""
        made = {host: str(uuid.uuid4()) for host in self.hosts}
        client = LocalPlacement(self._placement)
        client.report([ReportedProvider(made[host], host, INVENTORIES) for host in self.hosts])
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

    def close(self) -> None:
        self._placement.stop()

    def decisions(self, count: int, *, targeted: bool) -> Timing:
        """Each alone, for another host; the first few warm up and don't count."""
        took: list[float] = []
        processor = 0.0
        for number in range(-5, count):
            host = self.hosts[(number * 7919) % len(self.hosts)] if targeted else None
            search = HostSearch(_server(host))
            began, began_processor = time.perf_counter(), time.process_time()
            self._decider.decide([search])
            if number >= 0:
                took.append(1000 * (time.perf_counter() - began))
                processor += 1000 * (time.process_time() - began_processor)
            assert search.choices, search.refusal
            assert host is None or search.choices[0].place.host == host
        quantiles = statistics.quantiles(took, n=20)
        return Timing(statistics.median(took), quantiles[-1], processor / count)


def _server(host: str | None) -> Subject:
    return Subject(str(uuid.uuid4()), "p", "u", FLAVOR, {"host": host, "networks": "none"})
