"""A conductor that works when it is told to, and a host that only listens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from moorage.bus.contract import Heartbeat, NodeFacts, Task
from moorage.bus.local import LocalBus
from moorage.cli import settings
from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.compute.servers.states import TaskState
from moorage.conductor.agents.inbox import Inbox
from moorage.conductor.service import ConductorService, ConductorSettings
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.tables.compute import addresses, operations, servers, services, traces
from moorage.db.tables.placement import consumers
from moorage.images.catalogue import Catalogue
from moorage.ledger import queue
from moorage.network.pool import PoolNetwork, PoolSettings
from moorage.placement.client.contract import ConsumerClaim, PlacementRefusedError, ReportedProvider
from moorage.placement.client.local import LocalPlacement
from moorage.placement.service import PlacementService
from tests.functional.conductor.stall import Stall

HOST = "host-1"
FLAVOR = {"id": "f", "name": "f", "vcpus": 1, "ram": 1, "disk": 1, "extra_specs": {}}
ONE_SERVER = {"VCPU": {"total": 1}, "MEMORY_MB": {"total": 1}, "DISK_GB": {"total": 1}}


class Placement(LocalPlacement):
    """The real one; a test may do something right after a claim came true."""

    after_claim: Callable[[], object] | None = None

    def claim(self, claims: Sequence[ConsumerClaim]) -> list[PlacementRefusedError | None]:
        outcomes = super().claim(claims)
        if self.after_claim is not None:
            self.after_claim()
        return outcomes


class Stand:
    """A conductor that works when it is told to, one host of two nodes for one server each, one server."""

    def __init__(self, url: str, stall: Stall | None = None) -> None:
        conf = settings.read(None, {"database.connection": url})
        self._engine = engine.connect(url)
        migrate.sync(self._engine)
        self.database = Database(self._engine)
        self._service = PlacementService.from_conf(conf)
        self._service.start()
        self.placement = Placement(self._service)
        bus = LocalBus()
        self.tasks: list[Task] = []
        bus.agent_side().receive(HOST, self.tasks.extend)
        stall = stall or Stall()
        conductor = ConductorService(
            self.database,
            ConductorSettings.from_conf(conf),
            bus.conductor_side(),
            stall.watch(PoolNetwork(self.database, PoolSettings.from_conf(conf))),
            stall.watch(self.placement),
            Catalogue(self.database),
        )
        self.runner = conductor.runner
        self.work = self.runner.run_once
        self.nodes = [self._add_node(number) for number in range(2)]
        self.inbox = Inbox(
            self.database, KnownAggregates(self.database), lambda: None, lambda _host, _tasks: None
        )
        self._show_host()
        self.uuid = uuids.generate()
        self.server_id = self._add_server()

    def close(self) -> None:
        self._service.stop()
        self._engine.dispose()

    def start_over(self) -> None:
        """With a new server, and with hosts that are as empty as at first."""
        with self.database.write() as connection:
            holders = list(connection.execute(sa.select(consumers.c.uuid)).scalars())
            for table in (traces, operations, addresses, servers):
                connection.execute(sa.delete(table))
        self.placement.release(holders)
        self._show_host()
        self.uuid = uuids.generate()
        self.server_id = self._add_server()

    def delete(self) -> None:
        """As the API does; the host is down, so nobody waits for it."""

        def write(connection: sa.Connection) -> None:
            connection.execute(sa.update(services).values(seen_at=utcnow() - timedelta(hours=1)))
            connection.execute(sa.update(servers).values(task_state=TaskState.DELETING.value))
            queue.cancel(connection, self.server_id)
            queue.enqueue(connection, self.server_id, "delete", {})

        self.database.transact(write)

    def claim_elsewhere(self) -> None:
        """What a conductor does that is not at its checkpoint yet."""
        amounts = dict.fromkeys(ONE_SERVER, 1)
        assert self.placement.claim([ConsumerClaim(self.uuid, {self.nodes[1]: amounts}, "p", "u")]) == [None]

    def fill(self, node: str) -> str:
        """Somebody else takes the node; who that is."""
        amounts = dict.fromkeys(ONE_SERVER, 1)
        claim = ConsumerClaim(uuids.generate(), {node: amounts}, "p", "u")
        assert self.placement.claim([claim]) == [None]
        return claim.consumer_uuid

    def set_operation(self, **values: object) -> None:
        with self.database.write() as connection:
            connection.execute(sa.update(operations).values(values))

    def operations(self) -> list[sa.Row[Any]]:
        with self.database.read() as connection:
            return list(connection.execute(sa.select(operations).order_by(operations.c.id)))

    def operation(self) -> sa.Row[Any]:
        (only,) = self.operations()
        return only

    def server(self) -> sa.Row[Any]:
        with self.database.read() as connection:
            return connection.execute(sa.select(servers)).one()

    def node(self) -> str | None:
        found: str | None = self.server().node_uuid
        return found

    def addresses(self) -> set[str]:
        with self.database.read() as connection:
            return set(connection.execute(sa.select(addresses.c.address)).scalars())

    def held(self) -> set[str]:
        return set(self.placement.allocations(self.uuid)[0])

    def _show_host(self) -> None:
        facts = [NodeFacts(uuid, f"node-{uuid}", "fake") for uuid in self.nodes]
        self.inbox.on_heartbeat(Heartbeat(HOST, 1, nodes=facts))

    def _add_node(self, number: int) -> str:
        uuid = uuids.generate()
        self.placement.report([ReportedProvider(uuid, f"node-{number}", ONE_SERVER)])
        return uuid

    def _add_server(self) -> int:
        row = {
            "uuid": self.uuid,
            "project_id": "p",
            "user_id": "u",
            "name": "s",
            "hostname": "s",
            "reservation_id": "r-1",
            "flavor": FLAVOR,
            "flavorid": "f",
            "vm_state": "building",
        }

        def write(connection: sa.Connection) -> int:
            made = connection.execute(sa.insert(servers).values(row).returning(servers.c.id)).scalar_one()
            queue.enqueue(connection, made, "build", {})
            return int(made)

        return self.database.transact(write)
