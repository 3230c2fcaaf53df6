from __future__ import annotations

import pytest

from moorage.placement.client.contract import AllocationRequest, Candidates, ProviderSummary
from moorage.scheduler.errors import SchedulingError
from moorage.scheduler.offers import offers
from moorage.scheduler.request import Request, from_flavor
from moorage.topology.pci import parse_aliases
from tests.unit.scheduler.clouds import flavor, uuid

ALIASES = parse_aliases(
    [
        '{"name": "vf", "vendor_id": "8086", "product_id": "1515", "traits": "HW_NIC_SRIOV"}',
        '{"name": "near", "resource_class": "PGPU", "numa_policy": "required"}',
    ]
)


def _request(specs: dict[str, str], image: dict[str, str] | None = None, **numbers: int) -> Request:
    asked = {**flavor(), "vcpus": 4, "ram": 4096, **numbers, "extra_specs": specs}
    return from_flavor(uuid(1), asked, image, aliases=ALIASES)


def _pairs(
    specs: dict[str, str], image: dict[str, str] | None = None, **numbers: int
) -> list[tuple[str, str]]:
    return _request(specs, image, **numbers).queries(5)[0][1:]


def test_dedicated_processors_come_from_one_cell() -> None:
    assert _pairs({"hw:cpu_policy": "dedicated"}) == [
        ("resources", "DISK_GB:20,MEMORY_MB:4096"),
        ("resources_cell0", "PCPU:4"),
    ]


def test_an_image_may_ask_for_them() -> None:
    assert ("resources_cell0", "PCPU:4") in _pairs({}, {"hw_cpu_policy": "dedicated"})


def test_a_mixed_flavor_asks_for_both_kinds() -> None:
    assert _pairs({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0"})[:2] == [
        ("resources", "DISK_GB:20,MEMORY_MB:4096,VCPU:3"),
        ("resources_cell0", "PCPU:1"),
    ]


def test_an_isolated_emulator_takes_one_more() -> None:
    specs = {"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"}
    assert ("resources_cell0", "PCPU:5") in _pairs(specs)


@pytest.mark.parametrize(
    ("policy", "condition"), [("require", "HW_CPU_HYPERTHREADING"), ("isolate", "!HW_CPU_HYPERTHREADING")]
)
def test_a_thread_policy_is_a_trait_of_the_host(policy: str, condition: str) -> None:
    found = _pairs({"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": policy})
    assert ("root_required", condition) in found


def test_huge_pages_are_no_ordinary_memory() -> None:
    assert _pairs({"hw:mem_page_size": "2MB"}) == [
        ("resources", "DISK_GB:20,VCPU:4"),
        ("resources_cell0", "CUSTOM_HUGEPAGES_2048KB:2048"),
    ]


def test_each_cell_of_the_guest_is_a_group_and_gets_a_provider_of_its_own() -> None:
    specs = {"hw:numa_nodes": "2", "hw:cpu_policy": "dedicated", "hw:mem_page_size": "1GB"}
    assert _pairs(specs) == [
        ("resources", "DISK_GB:20"),
        ("resources_cell0", "CUSTOM_HUGEPAGES_1048576KB:2,PCPU:2"),
        ("resources_cell1", "CUSTOM_HUGEPAGES_1048576KB:2,PCPU:2"),
        ("group_policy", "isolate"),
    ]


def test_conditions_on_the_node_have_a_group_there_even_if_all_is_of_its_cells() -> None:
    specs = {"hw:cpu_policy": "dedicated", "hw:mem_page_size": "2MB"}
    assert _pairs(specs, disk=0)[0] == ("resources", "MEMORY_MB:1")


def test_devices_are_asked_for_by_their_alias() -> None:
    assert _pairs({"pci_passthrough:alias": "vf:2"})[1:] == [
        ("resources_pci0", "CUSTOM_PCI_8086_1515:1"),
        ("required_pci0", "HW_NIC_SRIOV"),
        ("resources_pci1", "CUSTOM_PCI_8086_1515:1"),
        ("required_pci1", "HW_NIC_SRIOV"),
        ("group_policy", "none"),
    ]


def test_a_device_that_has_to_be_near_is_below_the_cell_of_the_guest() -> None:
    near = {"pci_passthrough:alias": "vf:1,near:1", "hw:cpu_policy": "dedicated"}
    assert [pair for pair in _pairs(near) if pair[0] == "same_subtree"] == [("same_subtree", "_cell0,_pci1")]
    both = _pairs({**near, "hw:pci_numa_affinity_policy": "required"})
    assert ("same_subtree", "_cell0,_pci0") in both
    assert not [
        pair for pair in _pairs({**near, "hw:pci_numa_affinity_policy": "preferred"}) if "same" in pair[0]
    ]


def test_an_alias_that_nobody_defined_is_refused() -> None:
    with pytest.raises(SchedulingError, match="PCI alias gpu is not defined"):
        _pairs({"pci_passthrough:alias": "gpu:1"})


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(SchedulingError, match="hw:numa_nodes"):
        _pairs({"hw:numa_nodes": "3"})


def test_one_provider_never_serves_two_cells() -> None:
    request = _request({"hw:numa_nodes": "2", "hw:cpu_policy": "dedicated", "pci_passthrough:alias": "vf:1"})
    assert request.group_policy == "none", "devices may share a provider"
    together = AllocationRequest({"a": {"resources": {"PCPU": 4}}}, {"_cell0": ["a"], "_cell1": ["a"]})
    apart = AllocationRequest(
        {"a": {"resources": {"PCPU": 2}}, "b": {"resources": {"PCPU": 2}}}, {"_cell0": ["a"], "_cell1": ["b"]}
    )
    summary = ProviderSummary({"PCPU": {"capacity": 4, "used": 0}}, root_provider_uuid="root")
    found = offers(Candidates([together, apart], {"a": summary, "b": summary}), {"root"}, request.apart)
    assert found.by_node["root"].ways == [apart]
