"""Placement hears of what changed, of everything after an outage, and of nothing else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from moorage.agent.tracker import DISABLED_TRAIT, Tracker
from moorage.drivers.contract import Inventory, Node
from moorage.drivers.fake import FakeDriver, FakeSettings
from tests.functional.agent.conftest import Placement


@pytest.fixture
def nodes(tmp_path: Path) -> list[Node]:
    return list(FakeDriver("host-1", FakeSettings(nodes=5), tmp_path).nodes())


def test_nodes_become_providers(placement: Placement, nodes: list[Node]) -> None:
    assert Tracker(placement).report(nodes)
    assert placement.providers() == {node.uuid for node in nodes}
    found = placement.candidates([("resources", "VCPU:1,MEMORY_MB:512,DISK_GB:1"), ("limit", "10")])
    assert len(found.allocation_requests) == 5
    assert found.provider_summaries[nodes[0].uuid].resources["VCPU"]["capacity"] == 64 * 4


def test_only_what_changed_is_reported(placement: Placement, nodes: list[Node]) -> None:
    tracker = Tracker(placement)
    tracker.report(nodes)
    tracker.report(nodes)
    nodes[2] = msgspec.structs.replace(nodes[2], inventories={"VCPU": Inventory(total=8)})
    tracker.report(nodes)
    assert placement.reported == [5, 1]


def test_everything_is_reported_again_after_an_outage(placement: Placement, nodes: list[Node]) -> None:
    tracker = Tracker(placement)
    tracker.report(nodes)
    placement.unplugged = True
    changed = [*nodes[1:], msgspec.structs.replace(nodes[0], traits=[])]
    assert not tracker.report(changed)
    placement.unplugged = False
    assert tracker.report(changed)
    assert placement.reported == [5, 5]


def test_a_disabled_host_says_so_on_every_node(placement: Placement, nodes: list[Node]) -> None:
    tracker = Tracker(placement)
    tracker.report(nodes)
    tracker.disabled = True
    tracker.report(nodes)
    assert all(DISABLED_TRAIT in placement.traits(node.uuid) for node in nodes)
    tracker.disabled = False
    tracker.report(nodes)
    assert not any(DISABLED_TRAIT in placement.traits(node.uuid) for node in nodes)


def test_a_node_that_placement_refuses_does_not_hide_the_others(
    placement: Placement, nodes: list[Node]
) -> None:
    nodes[3] = msgspec.structs.replace(nodes[3], inventories={"NO_SUCH_CLASS": Inventory(total=1)})
    assert Tracker(placement).report(nodes)
    assert placement.providers() == {node.uuid for node in nodes} - {nodes[3].uuid}


def test_a_node_that_is_not_listed_keeps_its_provider(placement: Placement, nodes: list[Node]) -> None:
    tracker = Tracker(placement)
    tracker.report(nodes)
    tracker.report(nodes[:2])
    assert placement.providers() == {node.uuid for node in nodes}
