"""Two conductors at the same work, one of them late or dead: what the other one has done stays right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from moorage.bus.contract import DISCARD, Heartbeat, NodeFacts, Task
from moorage.bus.local import LocalBus
from moorage.cli import settings
from moorage.compute.known_aggregates import KnownAggregates
from moorage.conductor import leases, ledger
from moorage.conductor.inbox import Inbox
from moorage.conductor.service import ConductorService, Settings
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.tables.compute import addresses, operations, servers, services
from moorage.network.pool import PoolNetwork, PoolSettings
from moorage.placement.client.contract import ConsumerClaim, PlacementRefusedError, ReportedProvider
from moorage.placement.client.local import LocalPlacement
from moorage.placement.service import PlacementService

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

    def __init__(self, url: str) -> None:
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
        conductor = ConductorService(
            self.database,
            Settings.from_conf(conf),
            bus.conductor_side(),
            PoolNetwork(self.database, PoolSettings.from_conf(conf)),
            self.placement,
        )
        self.work = conductor.runner.run_once
        self.nodes = [self._add_node(number) for number in range(2)]
        facts = [NodeFacts(uuid, f"node-{uuid}", "fake") for uuid in self.nodes]
        aggregates = KnownAggregates(self.database)
        inbox = Inbox(self.database, aggregates, lambda: None, lambda _host, _tasks: None)
        inbox.on_heartbeat(Heartbeat(HOST, 1, nodes=facts))
        self.uuid = uuids.generate()
        self.server_id = self._add_server()

    def close(self) -> None:
        self._service.stop()
        self._engine.dispose()

    def claim_elsewhere(self) -> None:
        """What a conductor does that is not at its checkpoint yet."""
        amounts = dict.fromkeys(ONE_SERVER, 1)
        assert self.placement.claim([ConsumerClaim(self.uuid, {self.nodes[1]: amounts}, "p", "u")]) == [None]

    def fill(self, node: str) -> None:
        amounts = dict.fromkeys(ONE_SERVER, 1)
        claim = ConsumerClaim(uuids.generate(), {node: amounts}, "p", "u")
        assert self.placement.claim([claim]) == [None]

    def set_operation(self, **values: object) -> None:
        with self.database.write() as connection:
            connection.execute(sa.update(operations).values(values))

    def operation(self) -> sa.Row[tuple[object, ...]]:
        with self.database.read() as connection:
            return connection.execute(sa.select(operations)).one()

    def node(self) -> str | None:
        with self.database.read() as connection:
            found: str | None = connection.execute(sa.select(servers.c.node_uuid)).scalar_one()
            return found

    def addresses(self) -> set[str]:
        with self.database.read() as connection:
            return set(connection.execute(sa.select(addresses.c.address)).scalars())

    def held(self) -> set[str]:
        return set(self.placement.allocations(self.uuid)[0])

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
            ledger.enqueue(connection, made, "build", {})
            return int(made)

        return self.database.transact(write)


@pytest.fixture
def stand(database_url: str, tmp_path: Path) -> Iterator[Stand]:
    made = Stand(database_url)
    yield made
    made.close()


def test_a_claim_that_a_dead_conductor_left_is_not_in_the_servers_own_way(stand: Stand) -> None:
    """It took the last room there was; counted against the server, it would fail for lack of room."""
    stand.fill(stand.nodes[0])
    stand.claim_elsewhere()
    stand.set_operation(step="schedule", lease="dead", leased_until=utcnow() - timedelta(seconds=1))
    stand.work("heir")
    assert stand.node() == stand.nodes[1]
    assert stand.held() == {stand.nodes[1]}


def test_who_lost_its_lease_leaves_alone_what_its_successor_claimed(stand: Stand) -> None:
    stand.placement.after_claim = lambda: stand.set_operation(lease="successor")
    stand.work("late")
    assert stand.operation().lease == "successor"
    assert len(stand.held()) == 1


def test_who_comes_too_late_takes_back_what_it_claimed(stand: Stand) -> None:
    """Its successor found no host, and has given up."""
    over = {"lease": None, "leased_until": None, "finished_at": utcnow(), "outcome": "failed"}
    stand.placement.after_claim = lambda: stand.set_operation(**over)
    stand.work("late")
    assert stand.held() == set()


def test_who_stalled_takes_nothing_away(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lease ran out in the middle of a step: what the server holds may be its successor's by now."""
    stand.work("one")
    stand.set_operation(step="reschedule", due_at=utcnow())
    before, given_out = stand.held(), stand.addresses()
    monkeypatch.setattr(leases, "utcnow", lambda: utcnow() + timedelta(hours=1))
    stand.work("late")
    assert stand.held() == before != set()
    assert stand.addresses() == given_out != set()
    monkeypatch.undo()
    stand.set_operation(due_at=utcnow(), leased_until=None)
    stand.work("in time")
    assert stand.held() != before


def test_who_was_cancelled_takes_back_what_it_claimed(stand: Stand) -> None:
    stand.placement.after_claim = lambda: stand.database.transact(
        lambda connection: ledger.cancel(connection, stand.server_id)
    )
    stand.work("late")
    assert stand.held() == set()
    assert stand.operation().lease is None


def test_a_claim_in_dispute_is_only_replaced_under_a_new_lease(stand: Stand) -> None:
    """The one who meets it can't know whether it is late itself."""
    stand.set_operation(step="schedule")
    stand.claim_elsewhere()
    stand.work("one")
    assert stand.held() == {stand.nodes[1]}
    assert (stand.operation().step, stand.operation().tries, stand.node()) == ("schedule", 1, None)
    stand.set_operation(due_at=utcnow())
    stand.work("one")
    assert stand.held() == {stand.node()}


def test_a_host_that_a_build_leaves_is_told_to_keep_nothing_of_it(stand: Stand) -> None:
    stand.work("one")
    assert stand.operation().step == "spawned"
    with stand.database.write() as connection:
        long_ago = utcnow() - timedelta(hours=1)
        connection.execute(sa.update(services).values(seen_at=long_ago))
    stand.set_operation(due_at=utcnow())
    stand.work("one")
    kinds = [(task.kind, task.attempt) for task in stand.tasks if task.server_uuid == stand.uuid]
    assert kinds == [("spawn", 1), (DISCARD, 1)]
