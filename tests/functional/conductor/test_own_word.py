"""A host that is not itself any more: what it says of others' nodes and machines changes nothing."""

from __future__ import annotations

import itertools

import pytest
import sqlalchemy as sa

from moorage.bus.contract import Bid, Heartbeat, NodeFacts, ReportedFailure, Task
from moorage.bus.refusals import REFUSED
from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.compute.hosts import machine_failures
from moorage.compute.hosts.peers import TERMS
from moorage.conductor.agents.inbox import Inbox
from moorage.conductor.agents.listening import ListeningPeriod
from moorage.core import uuids
from moorage.db.database import Database
from moorage.db.tables.compute import nodes, services
from moorage.drivers.machine_failures import POLICY

PARTITION = {TERMS: {"key": "rack-a", "shard": None, "selection": "scheduler"}}
NODE = NodeFacts(uuids.generate(), "two", "QEMU")
MACHINE = NodeFacts(uuids.generate(), "machine", "ironic")


@pytest.fixture
def told() -> list[tuple[str, Task]]:
    return []


@pytest.fixture
def inbox(database: Database, told: list[tuple[str, Task]]) -> Inbox:
    """Hosts one and two have a node each, host metal shares its machines with peers."""

    def cast(host: str, tasks: list[Task]) -> None:
        told.extend((host, task) for task in tasks)

    listening = ListeningPeriod(60, itertools.count(0, 20).__next__)  # for long enough to believe silence
    made = Inbox(database, KnownAggregates(database), lambda: None, cast, listening=listening)
    made.on_heartbeat(Heartbeat("one", 5, nodes=[NodeFacts(uuids.generate(), "one", "QEMU")]))
    made.on_heartbeat(Heartbeat("two", 5, nodes=[NODE]))
    made.on_heartbeat(Heartbeat("metal", 5, facts=PARTITION, bid=Bid(wanted=[MACHINE])))
    told.clear()
    return made


def owner(database: Database, uuid: str) -> tuple[str, int]:
    with database.read() as connection:
        row = connection.execute(sa.select(nodes.c.host, nodes.c.epoch).where(nodes.c.uuid == uuid)).one()
        return row.host, row.epoch


def forget(database: Database, host: str) -> None:
    """As one that is down for long: a bid of a peer would get its nodes."""
    with database.write() as connection:
        late = sa.update(services).where(services.c.host == host)
        connection.execute(late.values(seen_at=sa.text("'2001-01-01 00:00:00'")))


def refusals() -> float:
    return float(REFUSED.labels("heartbeat", "not_own")._value.get())


def test_another_hosts_node_is_not_taken_by_reporting_it(inbox: Inbox, database: Database) -> None:
    before, count = owner(database, NODE.uuid), refusals()
    inbox.on_heartbeat(Heartbeat("one", 5, nodes=[NODE]))
    assert owner(database, NODE.uuid) == before
    assert refusals() == count + 1


def test_a_node_of_a_service_that_was_deleted_is(inbox: Inbox, database: Database) -> None:
    """As after a host got another name."""
    with database.write() as connection:
        connection.execute(sa.delete(services).where(services.c.host == "two"))
    inbox.on_heartbeat(Heartbeat("one", 5, nodes=[NODE]))
    assert owner(database, NODE.uuid)[0] == "one"


def test_another_hosts_node_is_not_taken_by_bidding_for_it(inbox: Inbox, database: Database) -> None:
    before, count = owner(database, NODE.uuid), refusals()
    forget(database, "two")
    inbox.on_heartbeat(Heartbeat("metal", 5, facts=PARTITION, bid=Bid(wanted=[NODE])))
    assert owner(database, NODE.uuid) == before
    assert refusals() == count + 1


def test_who_has_nodes_of_its_own_becomes_nobodys_peer(
    inbox: Inbox, database: Database, told: list[tuple[str, Task]]
) -> None:
    before, count = owner(database, MACHINE.uuid), refusals()
    forget(database, "metal")
    for _ in range(2):
        inbox.on_heartbeat(Heartbeat("one", 5, facts=PARTITION, bid=Bid(wanted=[MACHINE], everything=True)))
    assert owner(database, MACHINE.uuid) == before
    assert refusals() == count + 2
    assert told == []


def test_others_machines_neither_fail_nor_are_mended(inbox: Inbox, database: Database) -> None:
    policy = {POLICY: {"after": 1, "window": 3600}}
    failure = ReportedFailure(uuids.generate(), NODE.uuid, "deploy", "made up")
    inbox.on_heartbeat(Heartbeat("one", 5, facts=policy, failures=[failure]))
    inbox.on_heartbeat(Heartbeat("two", 5, facts=policy, failures=[failure]))
    inbox.on_heartbeat(Heartbeat("one", 5, facts=policy, mended=[NODE.uuid]))
    with database.read() as connection:
        assert [record.host for record in machine_failures.history(connection)] == ["two"]
        assert set(machine_failures.quarantined(connection)) == {NODE.uuid}
