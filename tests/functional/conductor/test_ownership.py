"""Nodes that several hosts share: they change hands when they should, and never have two owners."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from moorage.conductor.ownership import ownership
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.tables.compute import services
from tests.functional.conductor.shared_fleet import DOWN_AFTER, SharedFleet


@pytest.fixture
def fleet(database_url: str) -> Iterator[SharedFleet]:
    connected = engine.connect(database_url)
    migrate.sync(connected)
    yield SharedFleet(Database(connected))
    connected.dispose()


def shares(fleet: SharedFleet) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {host: set() for host in fleet.agents}
    for node, host in fleet.owners().items():
        found.setdefault(host, set()).add(node)
    return found


def test_hosts_of_a_group_share_its_nodes_and_others_have_none_of_them(fleet: SharedFleet) -> None:
    a, b = set(fleet.add_nodes("a", 30)), set(fleet.add_nodes("b", 10))
    for host, group in (("a-1", "a"), ("a-2", "a"), ("b-1", "b")):
        fleet.start(host, group)
    fleet.settle()
    found = shares(fleet)
    assert found["a-1"] | found["a-2"] == a
    assert found["a-1"]
    assert found["a-2"]
    assert found["b-1"] == b
    assert {host: agent.owned() for host, agent in fleet.agents.items()} == found


def test_once_settled_nothing_is_written(fleet: SharedFleet) -> None:
    fleet.add_nodes("a", 20)
    fleet.start("a-1", "a")
    fleet.start("a-2", "a")
    fleet.settle()
    before = fleet.epochs()
    fleet.settle()
    assert fleet.epochs() == before


def test_a_host_that_joins_gets_its_share_of_what_is_free(fleet: SharedFleet) -> None:
    nodes = fleet.add_nodes("a", 30)
    fleet.start("a-1", "a")
    fleet.settle()
    used = set(nodes[:10])
    for node in used:
        fleet.place(node)
    fleet.start("a-2", "a")
    fleet.settle()
    found = shares(fleet)
    assert found["a-2"]
    assert not found["a-2"] & used
    for node in used:
        fleet.remove_server(node)
    fleet.settle()
    assert shares(fleet)["a-2"] & used


def test_what_a_host_passes_on_to_a_peer_is_never_nobodys(fleet: SharedFleet) -> None:
    fleet.add_nodes("a", 30)
    fleet.start("a-1", "a")
    fleet.settle()
    fleet.start("a-2", "a")
    for _ in range(2):
        for host in ("a-2", "a-1"):
            fleet.look(host)
            fleet.beat(host)
            fleet.deliver(host)
            assert set(fleet.owners().values()) <= {"a-1", "a-2"}
    fleet.deliver("a-2")
    found = shares(fleet)
    assert found["a-2"]
    assert {host: agent.owned() for host, agent in fleet.agents.items()} == found, "without another bid"


def test_a_peer_that_died_meanwhile_gets_nothing(fleet: SharedFleet) -> None:
    nodes = fleet.add_nodes("a", 30)
    fleet.start("a-1", "a")
    fleet.settle()
    fleet.start("a-2", "a")
    fleet.beat("a-2")
    fleet.beat("a-1")
    fleet.deliver("a-1")
    fleet.kill("a-2")
    fleet.look("a-1")
    fleet.beat("a-1")
    assert set(fleet.owners().values()) == {"a-1", ownership.NOBODY}
    fleet.settle()
    assert shares(fleet)["a-1"] == set(nodes)


def test_node_and_server_leave_a_host_that_is_down_together(fleet: SharedFleet) -> None:
    nodes = fleet.add_nodes("a", 20)
    fleet.start("a-1", "a")
    fleet.start("a-2", "a")
    fleet.settle()
    for node in nodes:
        fleet.place(node)
    lost = shares(fleet)["a-1"]
    before = fleet.epochs()
    fleet.kill("a-1")
    fleet.settle()
    assert set(fleet.owners().values()) == {"a-2"}
    assert set(fleet.server_hosts().values()) == {"a-2"}
    grown = {node for node, epoch in fleet.epochs().items() if epoch == before[node] + 1}
    assert grown == lost
    fleet.start("a-1", "a")
    fleet.settle()
    assert set(fleet.owners().values()) == {"a-2"}, "they carry servers, so they stay"
    assert fleet.agents["a-1"].owned() == set()


def test_a_host_that_comes_back_takes_back_just_what_it_had(fleet: SharedFleet) -> None:
    fleet.add_nodes("a", 30)
    for host in ("a-1", "a-2", "a-3"):
        fleet.start(host, "a")
    fleet.settle()
    before = fleet.owners()
    fleet.kill("a-1")
    fleet.settle()
    assert all(host == before[node] for node, host in fleet.owners().items() if before[node] != "a-1")
    fleet.start("a-1", "a")
    fleet.settle()
    assert fleet.owners() == before


def test_without_failover_only_free_nodes_leave_a_host_that_is_down(fleet: SharedFleet) -> None:
    nodes = fleet.add_nodes("a", 20)
    for host in ("a-1", "a-2"):
        fleet.start(host, "a", failover=False)
    fleet.settle()
    lost = shares(fleet)["a-1"]
    used = sorted(lost)[0]
    fleet.place(used)
    fleet.kill("a-1")
    fleet.settle()
    assert shares(fleet)["a-1"] == {used}
    assert shares(fleet)["a-2"] == set(nodes) - {used}


def test_a_host_that_was_only_thought_dead_is_told_what_it_lost(fleet: SharedFleet) -> None:
    fleet.add_nodes("a", 20)
    fleet.start("a-1", "a")
    fleet.start("a-2", "a")
    fleet.settle()
    fleet.forget("a-1")
    for _ in range(2):
        fleet.beat("a-2")
        fleet.deliver("a-2")
        fleet.look("a-2")
    fleet.beat("a-2")
    assert set(fleet.owners().values()) == {"a-2"}
    fleet.deliver("a-1")
    assert fleet.agents["a-1"].owned() == set()
    fleet.settle()
    assert shares(fleet)["a-1"]


def test_a_node_goes_with_its_group_if_it_is_free(fleet: SharedFleet) -> None:
    free, used = fleet.add_nodes("a", 2)
    fleet.start("a-1", "a")
    fleet.start("b-1", "b")
    fleet.settle()
    fleet.place(used)
    fleet.machines.group |= {free: "b", used: "b"}
    fleet.settle()
    assert fleet.owners() == {free: "b-1", used: "a-1"}
    fleet.remove_server(used)
    fleet.settle()
    assert fleet.owners() == {free: "b-1", used: "b-1"}


def test_a_node_that_got_a_server_meanwhile_is_not_given_up(fleet: SharedFleet) -> None:
    """The conductor knows of the server before the machine does."""
    (node,) = fleet.add_nodes("a", 1)
    fleet.start("a-1", "a")
    fleet.settle()
    fleet.place(node)
    del fleet.machines.server[node]
    fleet.machines.group[node] = "b"
    fleet.look("a-1")
    fleet.beat("a-1")
    fleet.deliver("a-1")
    assert fleet.owners() == {node: "a-1"}
    assert fleet.agents["a-1"].owned() == {node}


def test_a_node_that_is_no_more_is_forgotten(fleet: SharedFleet) -> None:
    node, other = fleet.add_nodes("a", 2)
    fleet.start("a-1", "a")
    fleet.settle()
    del fleet.machines.group[node]
    fleet.settle()
    assert fleet.owners() == {other: "a-1"}


def test_the_end_of_a_node_that_nobody_heard_of_is_said_again(fleet: SharedFleet) -> None:
    node, other = fleet.add_nodes("a", 2)
    fleet.start("a-1", "a")
    fleet.settle()
    del fleet.machines.group[node]
    fleet.look("a-1")
    fleet.beat("a-1", heard=False)
    assert fleet.owners() == {node: "a-1", other: "a-1"}
    fleet.rest()
    assert fleet.owners() == {other: "a-1"}


def test_a_release_that_nobody_heard_of_is_said_again(fleet: SharedFleet) -> None:
    (node,) = fleet.add_nodes("a", 1)
    fleet.start("a-1", "a")
    fleet.start("b-1", "b")
    fleet.settle()
    fleet.machines.group[node] = "b"
    fleet.look("a-1")
    fleet.beat("a-1", heard=False)
    assert fleet.owners() == {node: "a-1"}
    fleet.settle()
    assert fleet.owners() == {node: "b-1"}


def test_a_host_that_an_operator_declared_dead_gets_nothing(fleet: SharedFleet) -> None:
    fleet.start("a-1", "a")
    fleet.settle()
    forced = sa.update(services).values(forced_down=True)
    fleet.database.transact(lambda connection: connection.execute(forced))
    fleet.add_nodes("a", 3)
    fleet.settle()
    assert fleet.owners() == {}


def test_a_node_that_an_operator_moved_is_worked_on_after_the_next_pass(fleet: SharedFleet) -> None:
    fleet.add_nodes("a", 6)
    for host in ("a-1", "a-2"):
        fleet.start(host, "a", failover=False)
    fleet.settle()
    node = sorted(shares(fleet)["a-1"])[0]
    fleet.place(node)
    fleet.kill("a-1")
    fleet.rest()
    assert node not in fleet.agents["a-2"].owned()
    fleet.database.transact(lambda connection: ownership.move(connection, node, "a-2", DOWN_AFTER))
    fleet.rest(1)
    assert node in fleet.agents["a-2"].owned()


def test_a_grant_that_got_lost_is_said_again_after_the_next_pass(fleet: SharedFleet) -> None:
    nodes = set(fleet.add_nodes("a", 6))
    agent = fleet.start("a-1", "a")
    fleet.settle()
    nodes |= set(fleet.add_nodes("a", 9))
    fleet.look("a-1")
    fleet.beat("a-1")
    fleet.mail["a-1"].clear()
    assert agent.owned() != nodes
    fleet.rest()
    assert agent.owned() == nodes


def test_a_host_that_knows_what_it_owns_is_told_nothing(fleet: SharedFleet) -> None:
    fleet.add_nodes("a", 6)
    fleet.start("a-1", "a")
    fleet.settle()
    fleet.look("a-1")
    fleet.beat("a-1")
    assert fleet.mail["a-1"] == []


def test_a_new_owner_hears_of_traits_that_an_earlier_one_gave(fleet: SharedFleet) -> None:
    node, other = fleet.add_nodes("a", 2)
    fleet.machines.traits |= {node: ["CUSTOM_OLD", "CUSTOM_STAYS"], other: ["CUSTOM_STAYS"]}
    fleet.start("a-1", "a")
    fleet.settle()
    fleet.kill("a-1")
    fleet.machines.traits[node] = ["CUSTOM_NEW", "CUSTOM_STAYS"]
    heir = fleet.start("a-2", "a")
    fleet.settle()
    assert fleet.owners() == {node: "a-2", other: "a-2"}
    assert heir.inherited == {node: ["CUSTOM_OLD"]}
    heir.inherited.clear()
    fleet.settle()
    assert heir.inherited == {node: ["CUSTOM_OLD"]}, "it may have been lost, so each full report repeats it"


def test_a_disabled_host_stays_a_member_and_keeps_its_nodes(fleet: SharedFleet) -> None:
    """Nothing is scheduled to its nodes; to give them to its peers would undo that."""
    fleet.add_nodes("a", 10)
    fleet.start("a-1", "a")
    fleet.start("a-2", "a")
    fleet.settle()
    before = fleet.owners()
    disabled = sa.update(services).where(services.c.host == "a-1").values(disabled=True)
    fleet.database.transact(lambda connection: connection.execute(disabled))
    fleet.settle()
    assert fleet.owners() == before
