"""One comparison of everything: what it finds, what it does, and what it leaves alone."""

from __future__ import annotations

import threading
from dataclasses import replace

import sqlalchemy as sa

from moorage.compute.aggregates import reconciliation
from moorage.compute.aggregates.reconciliation import Findings
from moorage.core.clock import utcnow
from moorage.db.tables.aggregates import deleted_aggregates, unmirrored_nodes
from tests.functional.mirror.site import Site, uuid_of
from tests.support.faulty_proxy import ERROR


def counts(found: Findings) -> tuple[int, int, int]:
    return found.added, found.removed, found.unchanged


def test_what_differs_is_put_right_in_both_ways(site: Site) -> None:
    site.add("one", "a", "b")
    site.add("two", "c")
    site.aggregate("x", "one")
    site.aggregate("y", "one", "two")
    site.put("a", "y", "theirs")  # x is missing
    site.put("c", "x", "y")  # x is too much
    found = site.sync()
    assert counts(found) == (1, 1, 4)
    assert site.says("a", "b", "c") == {"a": {"x", "y", "theirs"}, "b": {"x", "y"}, "c": {"y"}}
    assert {(change.host, change.provider) for change in found.changes} == {
        ("one", uuid_of("a")),
        ("two", uuid_of("c")),
    }
    assert counts(site.sync()) == (0, 0, 5)


def test_a_dry_run_tells_and_does_nothing(site: Site) -> None:
    site.add("one", "a", "b")
    site.aggregate("x", "one")
    site.put("a")
    site.put("b", "theirs")
    found = site.sync(dry=True)
    assert counts(found) == (2, 0, 0)
    assert site.says("a", "b") == {"a": set(), "b": {"theirs"}}
    assert counts(site.sync()) == (2, 0, 0)


def test_the_second_run_writes_nothing(remote: Site) -> None:
    for number in range(4):
        remote.add(f"h{number}", f"n{number}")
    remote.aggregate("x", "h0", "h1")
    remote.put("n0")
    remote.put("n3", "x")
    remote.sync()
    remote.proxy.requests.clear()
    assert counts(remote.sync()) == (0, 0, 2)
    assert remote.proxy.requests
    assert remote.proxy.writes == []


def test_nothing_is_sent_until_a_host_joins(remote: Site) -> None:
    remote.add("h", "n")
    remote.proxy.requests.clear()
    rack = remote.aggregate("rack")
    body = {"aggregate": {"name": "renamed", "availability_zone": "z"}}
    assert remote.admin.put(f"/os-aggregates/{rack}", body).status == 200
    action = {"set_metadata": {"metadata": {"a": "b"}}}
    assert remote.admin.post(f"/os-aggregates/{rack}/action", action).status == 200
    assert remote.admin.get("/os-aggregates").status == 200
    assert remote.proxy.requests == []
    remote.add_host(rack, "h")
    assert remote.proxy.writes


def test_what_is_not_found_is_told(site: Site) -> None:
    site.add("one", "a", "b")
    site.beat("two", "unreported")
    site.beat("empty")
    site.aggregate("x", "one", "two", "empty")
    site.direct.delete_provider(uuid_of("b"))
    for dry in (True, False, False):
        found = site.sync(dry=dry)
        assert found.missing_providers == {uuid_of("b"): "one", uuid_of("unreported"): "two"}
        assert found.hosts_without_nodes == ["empty"]
        assert counts(found) == (0, 0, 1)


def test_a_host_that_fails_does_not_keep_the_others_back(remote: Site) -> None:
    for number in range(4):
        remote.add(f"h{number}", f"n{number}")
    remote.aggregate("x", "h0", "h1", "h2", "h3")
    for number in range(4):
        remote.put(f"n{number}")
    path = f"/resource_providers/{uuid_of('n2')}/aggregates"
    remote.proxy.fail(replace(ERROR, path=path))
    found = remote.sync()
    if "resource_providers" in remote.proxy.requests[-1][1]:  # ours takes all of them in one request
        assert set(found.failed_hosts) == {"h2"}
        assert not found.gave_up
        assert counts(found) == (3, 0, 0)
    remote.proxy.fail(None)
    remote.sync()
    assert remote.says("n0", "n1", "n2", "n3") == {f"n{number}": {"x"} for number in range(4)}


def test_several_at_once_agree(site: Site) -> None:
    for number in range(6):
        site.add(f"h{number}", f"n{number}")
    site.aggregate("x", *(f"h{number}" for number in range(6)))
    for number in range(6):
        site.put(f"n{number}", "theirs")
    found: list[Findings] = []
    threads = [threading.Thread(target=lambda: found.append(site.sync())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert not any(one.failed_hosts for one in found)
    assert sum(one.added for one in found) == 6, "each association was made once"
    assert set(map(frozenset, site.says("n0", "n5").values())) == {frozenset({"x", "theirs"})}


def test_leftovers_are_remembered_until_nobody_has_them(site: Site) -> None:
    site.add("h", "n")
    rack = site.aggregate("rack")
    site.delete(rack)
    assert _remembered(site) == (1, 0)
    site.put("n", "rack")  # somebody who was at it just when the aggregate was deleted
    assert counts(site.sync()) == (0, 1, 0)
    _age(site)
    site.put("n", "rack")
    assert counts(site.sync()) == (0, 1, 0)
    assert _remembered(site) == (1, 0), "it was still there"
    site.sync()
    assert _remembered(site) == (0, 0)


def test_nodes_that_left_are_looked_after(site: Site) -> None:
    site.add("h", "n", "m")
    site.aggregate("rack", "h")
    site.beat("h", "n")
    assert _remembered(site) == (0, 1)
    assert counts(site.sync()) == (0, 1, 1)
    assert site.says("n", "m") == {"n": {"rack"}, "m": set()}
    assert _remembered(site) == (0, 0)


def _remembered(site: Site) -> tuple[int, int]:
    """How many deleted aggregates and unmirrored nodes."""
    with site.cloud.database.read() as connection:
        deleted, due = (
            connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in (deleted_aggregates, unmirrored_nodes)
        )
    return deleted, due


def _age(site: Site) -> None:
    long_ago = utcnow() - 2 * reconciliation.REMEMBER_DELETED
    with site.cloud.database.write() as connection:
        connection.execute(sa.update(deleted_aggregates).values(deleted_at=long_ago))
