from __future__ import annotations

from typing import Any

import pytest

from moorage.topology import pages
from moorage.topology.errors import BadTopologyError
from moorage.topology.parse import parse_topology
from moorage.topology.pci import parse_aliases
from moorage.topology.request import (
    CellRequest,
    CpuPolicy,
    DeviceRequest,
    PciAffinity,
    ThreadPolicy,
    TopologyRequest,
)


def _parsed(specs: dict[str, str], image: dict[str, Any] | None = None, vcpus: int = 4) -> TopologyRequest:
    return parse_topology({"vcpus": vcpus, "ram": 4096, "extra_specs": specs}, image or {})


def test_a_plain_flavor_asks_for_nothing_particular() -> None:
    assert _parsed({"quota:cpu_shares": "5"}, {"os_type": "linux"}) == TopologyRequest(vcpus=4)


def test_dedicated_vcpus_are_in_one_cell() -> None:
    found = _parsed({"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"})
    assert found.cells == (CellRequest((0, 1, 2, 3), 4096),)
    assert (found.pcpus(0), found.thread_policy) == (4, ThreadPolicy.REQUIRE)


def test_an_image_fills_in_what_its_flavor_leaves_open() -> None:
    found = _parsed(
        {"hw:mem_page_size": "large"},
        {"hw_cpu_policy": "dedicated", "hw_mem_page_size": "1GB", "hw_pci_numa_affinity_policy": "required"},
    )
    assert (found.cpu_policy, found.page_kib) == (CpuPolicy.DEDICATED, 1024**2)
    assert found.pci_affinity is PciAffinity.REQUIRED
    assert found.pages(0) == 4


def test_a_flavor_that_dedicates_does_so_for_every_image() -> None:
    assert _parsed({"hw:cpu_policy": "dedicated"}, {"hw_cpu_policy": "shared"}).dedicated == {0, 1, 2, 3}


def test_cells_are_alike_or_as_they_are_told() -> None:
    alike = _parsed({"hw:numa_nodes": "2", "hw:mem_page_size": "2048"})
    assert alike.cells == (CellRequest((0, 1), 2048), CellRequest((2, 3), 2048))
    assert alike.pages(1) == 1024
    told = _parsed(
        {
            "hw:numa_nodes": "2",
            "hw:numa_cpus.0": "0,2-3",
            "hw:numa_mem.0": "3072",
            "hw:numa_cpus.1": "1",
            "hw:numa_mem.1": "1024",
        }
    )
    assert told.cells == (CellRequest((0, 2, 3), 3072), CellRequest((1,), 1024))


@pytest.mark.parametrize("mask", ["1-3", "^0"])
def test_a_mixed_flavor_says_which_are_dedicated(mask: str) -> None:
    found = _parsed({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": mask})
    assert found.dedicated == {1, 2, 3}
    assert found.pcpus(0) == 3


def test_devices_are_counted_by_alias() -> None:
    found = _parsed({"pci_passthrough:alias": "gpu:2,nic:1"})
    assert found.devices == (DeviceRequest("gpu", 2), DeviceRequest("nic", 1))
    assert found.cells == ()


@pytest.mark.parametrize(
    ("specs", "image"),
    [
        ({"hw:cpu_policy": "sometimes"}, {}),
        ({"hw:cpu_policy": "shared"}, {"hw_cpu_policy": "dedicated"}),
        ({"hw:cpu_thread_policy": "require"}, {}),
        (
            {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "prefer"},
            {"hw_cpu_thread_policy": "require"},
        ),
        ({"hw:cpu_policy": "mixed"}, {}),
        ({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-3"}, {}),
        ({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "7"}, {}),
        ({"hw:cpu_dedicated_mask": "0"}, {}),
        ({"hw:emulator_threads_policy": "isolate"}, {}),
        ({"hw:numa_nodes": "0"}, {}),
        ({"hw:numa_nodes": "3"}, {}),
        ({"hw:numa_nodes": "9"}, {}),
        ({"hw:numa_nodes": "two"}, {}),
        ({"hw:numa_nodes": "2"}, {"hw_numa_nodes": "1"}),
        ({"hw:numa_cpus.0": "0-3"}, {}),
        ({"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-3"}, {}),
        ({"hw:numa_nodes": "1", "hw:numa_cpus.0": "0-2", "hw:numa_mem.0": "4096"}, {}),
        ({"hw:numa_nodes": "1", "hw:numa_cpus.0": "0-3", "hw:numa_mem.0": "4095"}, {}),
        ({"hw:numa_nodes": "1", "hw:numa_cpus.0": "x", "hw:numa_mem.0": "4096"}, {}),
        ({"hw:mem_page_size": "3MB"}, {}),
        ({"hw:mem_page_size": "0"}, {}),
        ({"hw:mem_page_size": "huge"}, {}),
        ({}, {"hw_mem_page_size": "2MB"}),
        ({"hw:mem_page_size": "1GB"}, {"hw_mem_page_size": "2MB"}),
        ({"pci_passthrough:alias": "gpu"}, {}),
        ({"pci_passthrough:alias": "gpu:0"}, {}),
        ({}, {"hw_pci_numa_affinity_policy": "near"}),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(specs: dict[str, str], image: dict[str, str]) -> None:
    with pytest.raises(BadTopologyError) as caught:
        _parsed(specs, image)
    assert caught.value.key in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kib"), [("2048", 2048), ("2MB", 2048), ("1GiB", 1_048_576), ("4kB", 4), ("16Mbit", 2048)]
)
def test_sizes_of_pages_are_read(text: str, kib: int) -> None:
    assert pages.parse_size(text) == kib


def test_an_alias_stands_for_a_resource_class() -> None:
    found = parse_aliases(
        [
            '{"name": "vf", "vendor_id": "8086", "product_id": "154c", "device_type": "type-VF"}',
            '{"name": "gpu", "resource_class": "pgpu", "traits": "big, HW_NIC_SRIOV"}',
        ]
    )
    assert found["vf"].resource_class == "CUSTOM_PCI_8086_154C"
    assert found["gpu"].resource_class == "PGPU"
    assert found["gpu"].traits == {"CUSTOM_BIG", "HW_NIC_SRIOV"}


@pytest.mark.parametrize(
    "values",
    [
        ["nonsense"],
        ['{"name": "a"}'],
        ['{"name": "a", "vendor_id": "8086"}'],
        ['{"name": "a", "resource_class": "x"}'] * 2,
    ],
)
def test_an_alias_that_makes_no_sense_is_refused(values: list[str]) -> None:
    with pytest.raises(ValueError):
        parse_aliases(values)
