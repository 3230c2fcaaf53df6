"""The own aggregates of hosts with many nodes: Placement knows whose each node is, and we know if it does."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.db.tables.aggregates import unmirrored_nodes
from moorage.db.tables.compute import nodes
from moorage.deciding import surroundings
from moorage.scheduler.request import TargetNodes
from tests.functional.mirror.site import Site, uuid_of


def targets(site: Site, host: str) -> TargetNodes:
    """How a server for that host is asked for."""
    return surroundings.look_up(site.cloud.database, [{"host": host}]).targets[host, None]


def named(*names: str) -> TargetNodes:
    return TargetNodes(tuple(uuid_of(name) for name in names))


def test_a_node_is_in_the_own_aggregate_of_its_host_and_moves_with_it(site: Site) -> None:
    site.add("a", "n", "m")
    site.add("b", "o")
    assert [site.owners(node, "a", "b") for node in "nmo"] == [{"a"}, {"a"}, {"b"}]
    assert targets(site, "a") == TargetNodes((), uuid_of("n")) or targets(site, "a").together == uuid_of("m")
    site.beat("a", "m")
    site.beat("b", "o", "n")
    assert targets(site, "b") == TargetNodes((uuid_of("n"),), uuid_of("o"))
    site.follow_nodes()
    assert site.owners("n", "a", "b") == {"b"}
    assert targets(site, "b").each == ()
    assert targets(site, "a") == TargetNodes((), uuid_of("m"))


def test_the_only_node_of_a_host_is_asked_for_by_itself(site: Site) -> None:
    site.add("a", "a")
    assert site.owners("a", "a") == set()
    assert targets(site, "a") == named("a")


def test_what_an_older_conductor_took_out_of_the_outbox_is_named_and_then_put_right(site: Site) -> None:
    site.add("a", "n", "m")
    site.add("b", "o")
    site.beat("a", "m")
    site.beat("b", "o", "n")
    with site.cloud.database.write() as connection:
        connection.execute(sa.delete(unmirrored_nodes))
    assert targets(site, "b") == TargetNodes((uuid_of("n"),), uuid_of("o"))
    found = site.sync()
    assert (found.added, found.removed, found.changes) == (0, 0, [])
    assert site.owners("n", "a", "b") == {"b"}
    assert targets(site, "b").each == ()


def test_what_is_right_in_placement_is_noted_though_nobody_knew(site: Site) -> None:
    """As after an outage between Placement's answer and the note of it."""
    site.add("a", "n", "m")
    with site.cloud.database.write() as connection:
        connection.execute(sa.update(nodes).values(mirrored_host=None))
    assert targets(site, "a") == named("m", "n")
    site.sync()
    assert targets(site, "a").each == ()


def test_what_somebody_changed_in_placement_is_put_back(site: Site) -> None:
    site.add("a", "n", "m")
    site.put("n", "theirs")
    site.sync()
    assert site.owners("n", "a") == {"a"}
    assert site.says("n") == {"n": {"theirs"}}
