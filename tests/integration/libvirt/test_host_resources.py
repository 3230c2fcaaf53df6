"""What a real libvirt says of a host, and where on it real guests are put."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from moorage.drivers.contract import RUNNING, Driver, NoRoomError, child_uuid
from moorage.drivers.libvirt.host.settings import HostSettings
from tests.integration.libvirt.stand import DirectoryImages, LibvirtStand, empty_image
from tests.lab.libvirt.hosts import LibvirtLab

PINNED = {"extra_specs": {"hw:cpu_policy": "dedicated"}}


class DedicatedStand(LibvirtStand):
    """The last processor of the machine is for one guest alone."""

    def _make(self) -> Driver:
        from moorage.drivers.libvirt import loading

        guests = loading.guest_settings(self.settings)
        settings = HostSettings(guests=guests, reserved_memory_mb=0, cpu_dedicated_set=frozenset({1}))
        return loading.driver(
            self.host.name, self.directory / "state", self.settings, settings, self.images, self.taps
        )


@pytest.fixture
def stand(lab: LibvirtLab, tmp_path: Path) -> Iterator[LibvirtStand]:
    images = DirectoryImages(tmp_path / "images")
    made = DedicatedStand(lab.hosts["h1"], tmp_path, images, images.add(empty_image(tmp_path), "qcow2"))
    yield made
    made.driver.close()
    assert made.leftovers() == []


def test_a_dedicated_processor_is_one_guests_alone(stand: LibvirtStand) -> None:
    (node,) = stand.driver.nodes()
    (cell,) = node.children or ()
    assert cell.inventories["PCPU"].total == 1
    assert node.inventories["MEMORY_MB"].total > 1024
    assert {"COMPUTE_STORAGE_BUS_VIRTIO", "COMPUTE_ARCH_X86_64", "HW_CPU_X86_SSE2"} <= set(node.traits)
    plain = stand.spec()
    given = {child_uuid(node.uuid, cell.name): {"PCPU": 1}}
    pinned = stand.spec(flavor=PINNED, allocations=given)
    for spec in (plain, pinned):
        assert stand.driver.spawn(spec) == RUNNING
    assert _pins(stand, plain.uuid) == {"0": _without(stand, 1)}
    assert _pins(stand, pinned.uuid) == {"0": "1"}
    (holding,) = stand.driver.nodes()[0].holdings
    assert (holding.server_uuid, {holding.provider_uuid: holding.resources}) == (pinned.uuid, given)
    with pytest.raises(NoRoomError):
        stand.driver.spawn(msgspec.structs.replace(stand.spec(flavor=PINNED), allocations=given))
    stand.restart()
    assert stand.driver.reboot(pinned.uuid, node.uuid, hard=True) == RUNNING
    assert _pins(stand, pinned.uuid) == {"0": "1"}
    for spec in (plain, pinned):
        stand.driver.destroy(spec.uuid, node.uuid)


def _pins(stand: LibvirtStand, server_uuid: str) -> dict[str, str]:
    domain = ElementTree.fromstring(stand.host.run("virsh", "dumpxml", server_uuid))
    return {pin.get("vcpu", ""): pin.get("cpuset", "") for pin in domain.iterfind("./cputune/vcpupin")}


def _without(stand: LibvirtStand, cpu: int) -> str:
    """All other processors, as libvirt writes them."""
    count = int(stand.host.run("nproc", "--all"))
    return "0" if count == 2 else f"0,{cpu + 1}-{count - 1}" if count > 3 else f"0,{cpu + 1}"
