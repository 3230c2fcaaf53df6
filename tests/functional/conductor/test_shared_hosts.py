"""What the inbox makes of hosts that share nodes: whom they are told of, and in which order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from moorage.bus.contract import DISCARD, OWN, SET_PEERS, Bid, NodeFacts, ObservedServer, Task
from moorage.core import uuids
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.tables.compute import nodes, operations, servers
from moorage.drivers.contract import RUNNING
from tests.functional.conductor.control import GROUP, Control


@pytest.fixture
def control(database_url: str) -> Iterator[Control]:
    connected = engine.connect(database_url)
    migrate.sync(connected)
    yield Control(Database(connected))
    connected.dispose()


def bid(node: str) -> Bid:
    return Bid(wanted=[NodeFacts(node, node, "ironic")], everything=True)


def kinds(told: list[tuple[str, Task]]) -> list[tuple[str, str]]:
    return [(host, task.kind) for host, task in told]


def test_a_host_is_told_of_its_peers_until_it_knows_them(control: Control) -> None:
    assert ("a-1", SET_PEERS) in kinds(control.beat("a-1"))
    told = control.beat("a-2", {"peers": ["a-2"]})
    assert [task.payload for _, task in told if task.kind == SET_PEERS] == [{"peers": ["a-1", "a-2"]}]
    assert kinds(control.beat("a-2", {"peers": ["a-1", "a-2"]})) == []


def test_a_host_hears_that_it_lost_a_node_before_it_hears_of_a_stray(control: Control) -> None:
    """Else it would end the server, which its new host has on the same machine."""
    node = uuids.generate()
    control.beat("a-1", bid=bid(node))
    server = control.server("a-1", node)
    control.die("a-1")
    lost = [task for host, task in control.beat("a-2", bid=bid(node)) if host == "a-1"]
    assert [task.payload for task in lost] == [{"revoked": {node: 2}}]
    told = [
        task
        for host, task in control.beat("a-1", observed={server: ObservedServer(RUNNING)})
        if host == "a-1"
    ]
    order = [task.kind for task in told if task.kind in (OWN, DISCARD)]
    assert order == [OWN, DISCARD]
    with control.database.read() as connection:
        host = connection.execute(sa.select(servers.c.host)).scalar_one()
        owner = connection.execute(sa.select(nodes.c.host)).scalar_one()
    assert (host, owner) == ("a-2", "a-2")


def test_progress_is_shown_and_earns_patience(control: Control) -> None:
    node = uuids.generate()
    control.beat("a-1", bid=bid(node))
    server = control.server("a-1", node)
    tried = sa.update(operations).values(tries=15)
    control.database.transact(lambda connection: connection.execute(tried))
    control.beat("a-2", progress={server: 80})  # not its server
    control.beat("a-1", progress={server: 60})
    with control.database.read() as connection:
        assert connection.execute(sa.select(servers.c.progress)).scalar_one() == 60
        assert connection.execute(sa.select(operations.c.tries)).scalar_one() == 0


def test_a_host_has_an_heir_if_a_peer_lives_that_takes_servers_over(control: Control) -> None:
    control.beat("a-1")
    assert not control.hosts.has_live_peer("a-1")
    control.beat("b-1", {"partition": {**GROUP, "key": "b"}})
    control.beat("a-2", {"failover_servers": False})
    assert not control.hosts.has_live_peer("a-1")
    control.beat("a-2", {"failover_servers": True})
    assert control.hosts.has_live_peer("a-1")
    control.die("a-2")
    assert not control.hosts.has_live_peer("a-1")
    assert not control.hosts.has_live_peer("unheard of")
