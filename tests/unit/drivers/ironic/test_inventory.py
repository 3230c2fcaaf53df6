"""What the scheduler knows of a node, from what Ironic says of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.drivers.ironic.api.record import NodeRecord
from moorage.drivers.ironic.nodes.inventory import Unfit, class_of, find

FIT = NodeRecord(
    uuid="11111111-2222-4333-8444-555555555555",
    name="rack-7-1",
    resource_class="gold",
    traits=["CUSTOM_SSD"],
    provision_state="available",
    power_state="power off",
    properties={"cpu_arch": "aarch64", "cpus": "16", "memory_mb": 65536, "local_gb": None},
)


def test_a_node_that_is_fit_offers_one_unit_of_its_class() -> None:
    node, unfit = find(FIT)
    assert node is not None
    assert unfit is None
    (unit,) = node.inventories.items()
    assert (unit[0], unit[1].total, unit[1].reserved) == ("CUSTOM_GOLD", 1, 0)
    assert node.traits == ["COMPUTE_NODE", "CUSTOM_SSD"]
    assert node.facts["supported_instances"] == [["aarch64", "baremetal", "hvm"]]
    assert (node.facts["vcpus"], node.facts["memory_mb"], node.facts["local_gb"]) == (16, 65536, 0)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"maintenance": True}, Unfit.MAINTENANCE),
        ({"retired": True}, Unfit.RETIRED),
        ({"provision_state": "cleaning"}, Unfit.NOT_AVAILABLE),
        ({"provision_state": "manageable"}, Unfit.NOT_AVAILABLE),
        ({"provision_state": "something new"}, Unfit.NOT_AVAILABLE),
        ({"instance_uuid": "somebody's"}, Unfit.IN_USE),
        ({"power_state": None}, Unfit.NO_POWER_STATE),
        ({"power_state": "error"}, Unfit.NO_POWER_STATE),
    ],
)
def test_a_node_that_is_not_fit_offers_nothing_and_says_why(changes: dict[str, Any], why: Unfit) -> None:
    node, unfit = find(msgspec.structs.replace(FIT, **changes))
    assert node is not None
    assert unfit is why
    assert all(unit.reserved == unit.total for unit in node.inventories.values())


def test_a_node_without_a_class_is_no_node() -> None:
    assert find(msgspec.structs.replace(FIT, resource_class=None)) == (None, Unfit.NO_CLASS)


def test_an_old_node_that_says_no_state_is_available() -> None:
    assert find(msgspec.structs.replace(FIT, provision_state=None)).unfit is None


@pytest.mark.parametrize(
    ("name", "found"),
    [("gold", "CUSTOM_GOLD"), ("x86.large-2", "CUSTOM_X86_LARGE_2"), ("A__b", "CUSTOM_A_B")],
)
def test_classes_are_spelt_as_placement_does(name: str, found: str) -> None:
    assert class_of(name) == found
