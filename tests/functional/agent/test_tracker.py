"""Placement hears of what changed, of everything after an outage, and of nothing else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from moorage.agent.journal import Journal
from moorage.agent.tracker import DISABLED_TRAIT, Tracker
from moorage.drivers.contract import Inventory, Node
from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from moorage.placement.client.contract import ReportedProvider
from tests.functional.agent.conftest import Placement


@pytest.fixture
def nodes(tmp_path: Path) -> list[Node]:
    return list(FakeDriver("host-1", FakeSettings(nodes=5), tmp_path).nodes())


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.sqlite")


def test_nodes_become_providers(placement: Placement, journal: Journal, nodes: list[Node]) -> None:
    assert Tracker(placement, journal).report(nodes)
    assert placement.providers() == {node.uuid for node in nodes}
    found = placement.candidates([("resources", "VCPU:1,MEMORY_MB:512,DISK_GB:1"), ("limit", "10")])
    assert len(found.allocation_requests) == 5
    assert found.provider_summaries[nodes[0].uuid].resources["VCPU"]["capacity"] == 64 * 4


def test_only_what_changed_is_reported(placement: Placement, journal: Journal, nodes: list[Node]) -> None:
    tracker = Tracker(placement, journal)
    tracker.report(nodes)
    tracker.report(nodes)
    nodes[2] = msgspec.structs.replace(nodes[2], inventories={"VCPU": Inventory(total=8)})
    tracker.report(nodes)
    assert placement.reported == [5, 1]


def test_everything_is_reported_again_after_an_outage(
    placement: Placement, journal: Journal, nodes: list[Node]
) -> None:
    tracker = Tracker(placement, journal)
    tracker.report(nodes)
    placement.unplugged = True
    changed = [*nodes[1:], msgspec.structs.replace(nodes[0], traits=[])]
    assert not tracker.report(changed)
    placement.unplugged = False
    assert tracker.report(changed)
    assert placement.reported == [5, 5]


def test_a_disabled_host_says_so_on_every_node(
    placement: Placement, journal: Journal, nodes: list[Node]
) -> None:
    tracker = Tracker(placement, journal)
    tracker.report(nodes)
    tracker.disabled = True
    tracker.report(nodes)
    assert all(DISABLED_TRAIT in placement.traits(node.uuid) for node in nodes)
    tracker.disabled = False
    tracker.report(nodes)
    assert not any(DISABLED_TRAIT in placement.traits(node.uuid) for node in nodes)


def test_a_node_that_placement_refuses_does_not_hide_the_others(
    placement: Placement, journal: Journal, nodes: list[Node]
) -> None:
    nodes[3] = msgspec.structs.replace(nodes[3], inventories={"NO_SUCH_CLASS": Inventory(total=1)})
    assert Tracker(placement, journal).report(nodes)
    assert placement.providers() == {node.uuid for node in nodes} - {nodes[3].uuid}


def test_a_node_that_is_not_listed_keeps_its_provider(
    placement: Placement, journal: Journal, nodes: list[Node]
) -> None:
    tracker = Tracker(placement, journal)
    tracker.report(nodes)
    tracker.report(nodes[:2])
    assert placement.providers() == {node.uuid for node in nodes}


def give_by_hand(placement: Placement, node: Node, trait: str) -> None:
    """What an operator does with a client of Placement's API."""
    traits = sorted({*placement.traits(node.uuid), trait})
    placement.report([ReportedProvider(node.uuid, node.name, traits=traits)])


def with_traits(nodes: list[Node], *traits: str) -> list[Node]:
    return [msgspec.structs.replace(node, traits=list(traits)) for node in nodes]


def test_traits_set_by_hand_stay_whatever_we_report(
    placement: Placement, journal: Journal, nodes: list[Node]
) -> None:
    tracker = Tracker(placement, journal)
    tracker.report(with_traits(nodes, "CUSTOM_OURS", "CUSTOM_OLD"))
    give_by_hand(placement, nodes[0], "CUSTOM_BY_HAND")
    tracker.forget()
    tracker.disabled = True
    tracker.report(with_traits(nodes, "CUSTOM_OURS"))
    assert placement.traits(nodes[0].uuid) == {"CUSTOM_OURS", "CUSTOM_BY_HAND", DISABLED_TRAIT}
    assert placement.traits(nodes[1].uuid) == {"CUSTOM_OURS", DISABLED_TRAIT}


def test_what_we_told_once_is_ours_after_a_restart(
    placement: Placement, journal: Journal, nodes: list[Node]
) -> None:
    Tracker(placement, journal).report(with_traits(nodes, "CUSTOM_OLD"))
    give_by_hand(placement, nodes[0], "CUSTOM_BY_HAND")
    again = Tracker(placement, journal)
    again.report(with_traits(nodes, "CUSTOM_NEW"))
    assert placement.traits(nodes[0].uuid) == {"CUSTOM_NEW", "CUSTOM_BY_HAND"}
    assert placement.traits(nodes[1].uuid) == {"CUSTOM_NEW"}


def test_a_trait_of_ours_that_somebody_took_away_comes_back(
    placement: Placement, journal: Journal, nodes: list[Node]
) -> None:
    tracker = Tracker(placement, journal)
    tracker.report(with_traits(nodes, "CUSTOM_OURS"))
    placement.report([ReportedProvider(nodes[0].uuid, nodes[0].name, traits=[])])
    tracker.forget()
    tracker.report(with_traits(nodes, "CUSTOM_OURS"))
    assert placement.traits(nodes[0].uuid) == {"CUSTOM_OURS"}


def test_traits_of_an_earlier_owner_go_and_those_set_by_hand_stay(
    placement: Placement, journal: Journal, tmp_path: Path, nodes: list[Node]
) -> None:
    Tracker(placement, journal).report(with_traits(nodes, "CUSTOM_OLD", "CUSTOM_STAYS"))
    give_by_hand(placement, nodes[0], "CUSTOM_BY_HAND")
    heir = Tracker(placement, Journal(tmp_path / "heir.sqlite"))
    heir.report(with_traits(nodes, "CUSTOM_STAYS"))
    heir.inherit({nodes[0].uuid: ["CUSTOM_OLD"]})
    heir.report(with_traits(nodes, "CUSTOM_STAYS"))
    assert placement.traits(nodes[0].uuid) == {"CUSTOM_STAYS", "CUSTOM_BY_HAND"}
    assert placement.traits(nodes[1].uuid) == {"CUSTOM_OLD", "CUSTOM_STAYS"}
