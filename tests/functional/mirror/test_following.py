"""Placement follows the aggregates: ours in the same process, ours over HTTP, and the reference."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Mapping

import pytest

from moorage.placement.client.contract import ConsumerClaim, ProviderAggregates
from tests.functional.mirror.site import Site, uuid_of

CLAIMS = 4
"""That come in between, one after the other."""


def test_every_node_of_a_host_joins_and_leaves(site: Site) -> None:
    nodes = [f"metal-{number}" for number in range(10)]
    site.add("ironic", *nodes)
    site.add("kvm", "kvm")
    rack = site.aggregate("rack", "ironic")
    both = site.aggregate("both", "ironic", "kvm")
    assert site.says(*nodes) == {node: {"rack", "both"} for node in nodes}
    assert site.says("kvm") == {"kvm": {"both"}}
    assert site.remove_host(both, "ironic").status == 200
    assert site.says(*nodes) == {node: {"rack"} for node in nodes}
    assert site.says("kvm") == {"kvm": {"both"}}
    assert site.remove_host(rack, "ironic").status == 200
    assert site.says(*nodes) == {node: set() for node in nodes}


def test_what_others_put_into_placement_stays(site: Site) -> None:
    site.add("h", "n")
    site.put("n", "network", "storage")
    rack = site.aggregate("rack", "h")
    assert site.says("n") == {"n": {"network", "storage", "rack"}}
    site.remove_host(rack, "h")
    assert site.says("n") == {"n": {"network", "storage"}}
    site.delete(rack)
    site.sync()
    assert site.says("n") == {"n": {"network", "storage"}}


def test_a_provider_that_shares_with_an_aggregate_stays_in_it(site: Site) -> None:
    site.add("h", "n")
    rack = site.aggregate("rack", "h")
    site.report("disk-array", aggregates=["rack"])
    site.sync()
    site.remove_host(rack, "h")
    site.sync()
    assert site.says("n", "disk-array") == {"n": set(), "disk-array": {"rack"}}


def test_a_deletion_takes_what_is_left(site: Site) -> None:
    site.add("h", "n", "m")
    rack, other = site.aggregate("rack"), site.aggregate("other", "h")
    site.put("n", "rack", "other", "theirs")
    site.report("disk-array", aggregates=["rack", "theirs"])
    assert site.delete(rack).status == 200
    assert site.says("n", "m", "disk-array") == {
        "n": {"other", "theirs"},
        "m": {"other"},
        "disk-array": {"theirs"},
    }
    assert other


def test_a_node_that_arrives_later_joins_by_itself(site: Site) -> None:
    site.add("h", "n")
    site.aggregate("rack", "h")
    site.report("late")
    site.beat("h", "n", "late")
    site.follow_nodes()
    assert site.says("late") == {"late": {"rack"}}


def test_a_node_is_waited_for_until_placement_has_it(site: Site) -> None:
    site.add("h", "n")
    rack = site.aggregate("rack", "h")
    site.beat("h", "n", "late")
    site.follow_nodes()
    site.follow_nodes()
    assert site.says("late") == {}
    site.report("late")
    site.follow_nodes()
    assert site.says("n", "late") == {"n": {"rack"}, "late": {"rack"}}
    site.beat("h", "n", "late", "later")
    other = site.aggregate("other", "h")  # here the host joins before Placement has the node
    site.report("later")
    site.follow_nodes()
    assert site.says("later") == {"later": {"rack", "other"}}
    assert rack != other


def test_a_node_that_moves_changes_its_aggregates(site: Site) -> None:
    site.add("one", "a", "b")
    site.add("two", "c")
    site.aggregate("both", "one", "two")
    site.aggregate("only-one", "one")
    site.aggregate("only-two", "two")
    site.put("a", "both", "only-one", "theirs")
    site.beat("one", "b")  # nobody takes a node of a host that has it
    site.beat("two", "a", "c")
    site.follow_nodes()
    assert site.says("a", "b", "c") == {
        "a": {"both", "only-two", "theirs"},
        "b": {"both", "only-one"},
        "c": {"both", "only-two"},
    }


def test_a_node_that_leaves_leaves_the_aggregates_too(site: Site) -> None:
    site.add("h", "stays", "goes")
    site.aggregate("rack", "h")
    site.beat("h", "stays")
    site.follow_nodes()
    assert site.says("stays", "goes") == {"stays": {"rack"}, "goes": set()}
    site.beat("h", "stays", "goes")
    site.follow_nodes()
    assert site.says("goes") == {"goes": {"rack"}}


def test_a_host_that_is_deleted_is_in_no_aggregate_any_more(site: Site) -> None:
    site.add("h", "n", "in-use")
    site.add("other", "o")
    rack = site.aggregate("rack", "h", "other")
    site.direct.claim([ConsumerClaim(uuid_of("server"), {uuid_of("in-use"): {"VCPU": 1}}, "p", "u")])
    listed = site.admin.get("/os-services?host=h").json["services"]
    assert site.admin.delete(f"/os-services/{listed[0]['id']}").status == 204
    assert site.admin.get(f"/os-aggregates/{rack}").json["aggregate"]["hosts"] == ["other"]
    site.follow_nodes()
    assert site.says("n", "in-use", "o") == {"in-use": set(), "o": {"rack"}}


def test_a_host_without_nodes_can_be_grouped(site: Site) -> None:
    site.beat("empty")
    site.aggregate("rack", "empty")
    site.report("first")
    site.beat("empty", "first")
    site.follow_nodes()
    assert site.says("first") == {"first": {"rack"}}


def test_a_host_that_is_added_and_removed_at_once_ends_as_the_last_one_said(site: Site) -> None:
    site.add("h", *(f"n{number}" for number in range(5)))
    racks = [site.aggregate(f"rack-{number}") for number in range(3)]

    def flap(aggregate_id: int, stay: bool) -> None:
        for _ in range(2):
            site.add_host(aggregate_id, "h")
            site.remove_host(aggregate_id, "h")
        if stay:
            site.add_host(aggregate_id, "h")

    threads = [threading.Thread(target=flap, args=(rack, rack % 2 == 0)) for rack in racks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = {f"rack-{number}" for number, rack in enumerate(racks) if rack % 2 == 0}
    assert site.says("n0", "n4") == {"n0": wanted, "n4": wanted}


def test_a_claim_in_between_does_not_matter(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim is a new generation of its provider: what was read before it can't be written any more."""

    site.add("h", "n")
    rack = site.aggregate("rack")
    read = site.placement.aggregates
    servers = (uuid_of(f"server-{number}") for number in itertools.count())
    due: list[str] = []

    def read_before_a_claim(uuids: Collection[str]) -> Mapping[str, ProviderAggregates]:
        found = read(uuids)
        if due:
            consumer = due.pop()
            site.direct.claim([ConsumerClaim(consumer, {uuid_of("n"): {"VCPU": 1}}, "p", "u")])
            site.direct.release([consumer])
        return found

    monkeypatch.setattr(site.placement, "aggregates", read_before_a_claim)
    for change, expected in [(site.add_host, {"rack"}), (site.remove_host, set[str]())]:
        due.extend(itertools.islice(servers, CLAIMS))
        assert change(rack, "h").status == 200
        assert due == []
        assert site.says("n") == {"n": expected}
