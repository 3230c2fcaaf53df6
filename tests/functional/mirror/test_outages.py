"""Placement away, broken or talking nonsense: the call succeeds, and the difference is put right later."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY

from moorage.compute.aggregates.mirror import PROBLEMS
from moorage.compute_api.hosts import background_mirror
from tests.functional.mirror.site import Site, uuid_of
from tests.support.faulty_proxy import CONFLICT, ERROR, GARBAGE, HUNG_UP, LOST_ANSWER, SLOW, Fault
from tests.support.processes import wait_until

ALWAYS = {"hung up": HUNG_UP, "error": ERROR, "garbage": GARBAGE, "conflict": CONFLICT}
IN_BETWEEN = {
    "hung up": replace(HUNG_UP, after=3),
    "error": replace(ERROR, after=2),
    "garbage": replace(GARBAGE, after=1),
    "no writes": replace(HUNG_UP, method="PUT", after=1),
}
PASSING = {
    "two conflicts": replace(CONFLICT, times=2),
    "one error": replace(ERROR, times=1, method="PUT"),
    "lost answer": replace(LOST_ANSWER, times=1),
}


def failures(event: str) -> float:
    return REGISTRY.get_sample_value("moorage_mirror_failures_total", {"event": event}) or 0.0


@pytest.fixture
def rack(remote: Site) -> int:
    remote.add("h", "n", "m")
    remote.put("n", "theirs")
    return remote.aggregate("rack")


@pytest.mark.parametrize("fault", ALWAYS.values(), ids=ALWAYS.keys())
def test_a_host_joins_whatever_placement_says(
    remote: Site, rack: int, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    before = failures("add_host")
    remote.proxy.fail(fault)
    with caplog.at_level(logging.WARNING, "moorage.compute.aggregates.mirror"):
        answer = remote.add_host(rack, "h")
        # On a busy machine the user has his answer before Placement was asked often enough.
        wait_until(lambda: failures("add_host") > before, "the last attempt")
    assert (answer.status, answer.json["aggregate"]["hosts"]) == (200, ["h"])
    assert failures("add_host") == before + 1
    assert "Placement does not know the aggregates of the nodes of host h yet" in caplog.text
    remote.proxy.fail(None)
    assert remote.says("n", "m") == {"n": {"theirs"}, "m": set()}
    remote.sync()
    assert remote.says("n", "m") == {"n": {"theirs", "rack"}, "m": {"rack"}}


@pytest.mark.parametrize("fault", IN_BETWEEN.values(), ids=IN_BETWEEN.keys())
def test_an_outage_in_the_middle_is_put_right(remote: Site, rack: int, fault: Fault) -> None:
    remote.proxy.fail(fault)
    assert remote.add_host(rack, "h").status == 200
    assert remote.remove_host(rack, "h").status == 200
    assert remote.add_host(rack, "h").status == 200
    remote.proxy.fail(None)
    remote.sync()
    assert remote.says("n", "m") == {"n": {"theirs", "rack"}, "m": {"rack"}}


def test_what_was_done_is_counted_though_a_part_failed(remote: Site) -> None:
    for host in ("a", "b", "c"):
        remote.add(host, f"{host}1", f"{host}2")
    remote.aggregate("rack", "a", "b", "c")
    for host in ("a", "b", "c"):
        remote.put(f"{host}1")
        remote.put(f"{host}2", "theirs")
    remote.proxy.fail(replace(ERROR, method="PUT", path=uuid_of("b2")))  # ours has no such path, and goes on
    found = remote.sync()
    says = remote.says("a1", "a2", "b1", "b2", "c1", "c2")
    done = {name for name, aggregates in says.items() if "rack" in aggregates}
    assert done >= {"a1", "a2", "c1", "c2"}
    assert (found.added, found.removed, len(found.changes)) == (len(done), 0, len(done))
    assert list(found.failed_hosts) == ([] if "b2" in done else ["b"])


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_what_passes_is_not_noticed(remote: Site, rack: int, fault: Fault) -> None:
    before = failures("add_host")
    remote.proxy.fail(fault)
    assert remote.add_host(rack, "h").status == 200
    assert remote.says("n", "m") == {"n": {"theirs", "rack"}, "m": {"rack"}}
    assert failures("add_host") == before


@pytest.mark.parametrize("fault", ALWAYS.values(), ids=ALWAYS.keys())
def test_an_aggregate_goes_whatever_placement_says(remote: Site, rack: int, fault: Fault) -> None:
    remote.add_host(rack, "h")
    remote.proxy.fail(fault)
    assert remote.remove_host(rack, "h").status == 200
    assert remote.delete(rack).status == 200
    remote.proxy.fail(None)
    assert remote.says("n", "m") == {"n": {"theirs", "rack"}, "m": {"rack"}}
    found = remote.sync()
    assert (found.added, found.removed) == (0, 2)
    assert remote.says("n", "m") == {"n": {"theirs"}, "m": set()}


def test_nobody_waits_for_a_placement_that_hangs(
    remote: Site, rack: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background_mirror, "PATIENCE", 0.1)
    remote.proxy.fail(SLOW)
    with caplog.at_level(logging.WARNING):
        assert remote.add_host(rack, "h").status == 200
    assert "told in the background" in caplog.text
    assert remote.says("n", "m") == {"n": {"theirs"}, "m": set()}
    expected = {"n": {"theirs", "rack"}, "m": {"rack"}}
    wait_until(lambda: remote.says("n", "m") == expected, "Placement to be told", 30)


def test_nodes_that_came_during_an_outage_are_looked_after(remote: Site, rack: int) -> None:
    remote.add_host(rack, "h")
    remote.report("late")
    before = failures("node")
    remote.proxy.fail(HUNG_UP)
    remote.beat("h", "n", "late")
    remote.follow_nodes()
    assert failures("node") == before + 1
    remote.proxy.fail(None)
    remote.follow_nodes()
    assert remote.says("n", "m", "late") == {"n": {"theirs", "rack"}, "m": set(), "late": {"rack"}}


@pytest.mark.parametrize("fault", [HUNG_UP, ERROR, GARBAGE], ids=["hung up", "error", "garbage"])
def test_a_comparison_that_can_not_read_says_so(remote: Site, rack: int, fault: Fault) -> None:
    remote.proxy.fail(fault)
    with pytest.raises(PROBLEMS):
        remote.sync()


def test_a_comparison_gives_up_when_placement_goes_away(remote: Site) -> None:
    hosts = [f"h{number}" for number in range(6)]
    for host in hosts:
        remote.add(host, host)  # namesakes have no own aggregates, of which the reference is asked one by one
    rack = remote.aggregate("rack")
    remote.proxy.fail(HUNG_UP)
    for host in hosts:
        remote.add_host(rack, host)
    remote.proxy.fail(replace(HUNG_UP, after=2))
    found = remote.sync()
    assert found.gave_up
    assert set(found.failed_hosts) == set(hosts)
    remote.proxy.fail(None)
    remote.sync()
    assert all(says == {"rack"} for says in remote.says(*hosts).values())
