from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.core import config
from moorage.core.config import ConfigError
from moorage.drivers.contract import Holding, Node, child_uuid
from moorage.drivers.libvirt.host.inventory import HostInventory
from moorage.drivers.libvirt.host.options import OPTIONS
from moorage.drivers.libvirt.host.pci_devices import PciType, parse_node_device
from moorage.drivers.libvirt.host.settings import GuestSettings, HostSettings
from moorage.drivers.libvirt.host.topology import GuestCell, GuestTopology, PciAddress
from tests.unit.drivers.libvirt.fake_hypervisor import SampleHypervisor, sample

DEVICES = [
    "device_virtio",
    "device_physical_function",
    "device_virtual_function_0",
    "device_virtual_function_1",
    "device_accelerator",
]
VIRTUAL = '{"vendor_id": "8086", "product_id": "1515", "traits": "fast, HW_NIC_SRIOV"}'
ACCELERATOR = '[{"address": "0000:41:*.*", "resource_class": "accelerator"}]'


def _settings(directory: Path, text: str) -> HostSettings:
    file = directory / "moorage.conf"
    file.write_text(text)
    guests = GuestSettings(virt_type="qemu", instances_path=directory)
    return HostSettings.from_conf(config.read([str(file)], [OPTIONS]), guests)


def _node(directory: Path, text: str, **more: Any) -> Node:
    hypervisor = SampleHypervisor(
        "capabilities_two_cells", memory_kib=67_108_864, devices=[sample(name) for name in DEVICES]
    )
    return HostInventory("h1", lambda: hypervisor, _settings(directory, text), directory, **more).node()


def test_a_host_where_nothing_is_configured_is_one_provider(tmp_path: Path) -> None:
    inventory = HostInventory("h1", SampleHypervisor, _settings(tmp_path, ""), tmp_path)
    assert inventory.node().children == ()


def test_cells_have_their_dedicated_processors_and_huge_pages(tmp_path: Path) -> None:
    node = _node(
        tmp_path,
        "[compute]\ncpu_dedicated_set = 2-3,10-11,7\nreserved_huge_pages = node:1,size:2048,count:1024\n",
    )
    found = {child.name: child for child in node.children or ()}
    totals = {
        name: {resource: inventory.total for resource, inventory in child.inventories.items()}
        for name, child in found.items()
    }
    assert totals == {
        "h1_NUMA0": {"PCPU": 4, "CUSTOM_HUGEPAGES_2048KB": 2048, "CUSTOM_HUGEPAGES_1048576KB": 4},
        "h1_NUMA1": {"PCPU": 1, "CUSTOM_HUGEPAGES_1048576KB": 4},
    }
    assert all(child.traits == ["HW_NUMA_ROOT"] for child in found.values())
    assert "PCPU" not in node.inventories
    assert node.inventories["VCPU"].total == 11
    assert node.inventories["MEMORY_MB"].total == 65536 - 3072 * 2 - 8 * 1024, (
        "huge pages are no ordinary memory"
    )


def test_virtual_functions_are_told_together_and_below_their_cell(tmp_path: Path) -> None:
    node = _node(
        tmp_path,
        f"[compute]\ncpu_dedicated_set = 5\n[pci]\ndevice_spec = {VIRTUAL}\ndevice_spec = {ACCELERATOR}\n",
    )
    found = {child.name: child for child in node.children or ()}
    functions, accelerator = found["h1_0000:81:00.0"], found["h1_0000:41:00.0"]
    assert {name: one.total for name, one in functions.inventories.items()} == {"CUSTOM_PCI_8086_1515": 2}
    assert functions.traits == ["COMPUTE_MANAGED_PCI_DEVICE", "CUSTOM_FAST", "HW_NIC_SRIOV"]
    assert functions.parent == "h1_NUMA1"
    assert list(accelerator.inventories) == ["CUSTOM_ACCELERATOR"]
    assert [child.name for child in node.children or ()].index("h1_NUMA1") == 1, "parents come first"


def test_a_physical_function_is_not_given_away_with_its_virtual_ones(tmp_path: Path) -> None:
    both = '{"vendor_id": "8086", "address": "0000:81:*.*"}'
    node = _node(tmp_path, f"[pci]\ndevice_spec = {both}\n")
    (child,) = (child for child in node.children or () if "NUMA" not in child.name)
    assert {name: one.total for name, one in child.inventories.items()} == {"CUSTOM_PCI_8086_1515": 2}


def test_devices_are_read_as_libvirt_tells_them() -> None:
    device = parse_node_device(sample("device_virtual_function_1"))
    assert device is not None
    assert (str(device.address), device.type, device.cell) == ("0000:81:10.1", PciType.VIRTUAL, 1)
    assert device.physical == PciAddress.parse("0000:81:00.0")
    virtio = parse_node_device(sample("device_virtio"))
    assert virtio is not None
    assert (virtio.vendor_id, virtio.product_id, virtio.type) == ("1af4", "1045", PciType.DEVICE)


def test_the_node_says_where_its_guests_are(tmp_path: Path) -> None:
    guest = GuestTopology(
        vcpu_pins={0: (2,), 1: (7,)},
        dedicated=(2, 7),
        cells=(GuestCell(0, (0,), 1024, 0), GuestCell(1, (1,), 1024, 1)),
        page_kib=2048,
        devices=(PciAddress.parse("0000:81:10.1"),),
    )
    node = _node(
        tmp_path,
        f"[compute]\ncpu_dedicated_set = 2,7\n[pci]\ndevice_spec = {VIRTUAL}\n",
        guests=lambda: {"server": guest},
    )
    cell = {"PCPU": 1, "CUSTOM_HUGEPAGES_2048KB": 512}
    assert list(node.holdings) == [
        Holding("server", child_uuid(node.uuid, "h1_0000:81:00.0"), {"CUSTOM_PCI_8086_1515": 1}),
        Holding("server", child_uuid(node.uuid, "h1_NUMA0"), cell),
        Holding("server", child_uuid(node.uuid, "h1_NUMA1"), cell),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[compute]\nreserved_huge_pages = node:0\n",
        "[compute]\nreserved_huge_pages = node:0,size:x,count:1\n",
        "[pci]\ndevice_spec = nonsense\n",
        '[pci]\ndevice_spec = {"vendor_id": "80"}\n',
        '[pci]\ndevice_spec = {"address": "81"}\n',
        '[pci]\ndevice_spec = {"physical_network": "physnet0"}\n',
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"reserved_huge_pages|device_spec"):
        _settings(tmp_path, text)
