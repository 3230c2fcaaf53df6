"""All that flavors and images may ask for, given by a real libvirt and QEMU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from moorage.drivers.contract import RUNNING, ServerSpec
from moorage.drivers.libvirt.vifs.contract import Vif, tap_of
from moorage.drivers.libvirt.vifs.os_vif import OsVifs, OsVifSettings
from moorage.drivers.parts import Lasting, Rescuable, require
from tests.integration.libvirt.stand import LibvirtStand, PlainTaps

MODERN = {
    "hw_disk_bus": "scsi",
    "hw_cdrom_bus": "sata",
    "hw_vif_model": "e1000e",
    "hw_video_model": "vga",
    "hw_video_ram": "32",
    "hw_watchdog_action": "reset",
    "hw_qemu_guest_agent": "yes",
    "hw_boot_menu": "true",
    "hw_serial_port_count": "2",
    "hw_time_hpet": "true",
    "hw_pointer_model": "ps2mouse",
    "img_hide_hypervisor_id": "true",
    "os_type": "windows",
}
OLD = {
    "hw_machine_type": "pc",
    "hw_disk_bus": "ide",
    "hw_cdrom_bus": "ide",
    "hw_vif_model": "rtl8139",
    "hw_video_model": "cirrus",
    "hw_watchdog_action": "poweroff",
}
SPECS = {
    "hw:cpu_sockets": "1",
    "hw:cpu_cores": "2",
    "hw:serial_port_count": "2",
    "hw_video:ram_max_mb": "64",
    "quota:disk_read_iops_sec": "100",
    "quota:disk_total_bytes_sec": "1048576",
}


@pytest.mark.parametrize("properties", [MODERN, OLD, {"hw_vif_multiqueue_enabled": "true"}])
def test_a_guest_gets_what_its_image_asks_for(stand: LibvirtStand, properties: dict[str, str]) -> None:
    spec = stand.spec(
        properties=properties,
        flavor={"vcpus": 2, "extra_specs": SPECS, "ephemeral": 1, "swap": 8},
        config_drive=True,
        network=[stand.port()],
    )
    assert stand.driver.spawn(spec) == RUNNING
    hardware = require(stand.driver, Lasting).hardware(spec.uuid, spec.node_uuid)
    assert hardware["machine_type"] not in ("pc", "q35"), "a version, once and for all"
    assert stand.driver.reboot(spec.uuid, spec.node_uuid, hard=True) == RUNNING
    stand.forget(spec)


@pytest.mark.parametrize("device", [("cdrom", "scsi"), ("disk", "usb"), ("disk", "virtio")])
def test_a_rescue_image_says_what_device_it_becomes(stand: LibvirtStand, device: tuple[str, str]) -> None:
    spec = stand.spec(config_drive=True)
    stand.driver.spawn(spec)
    rescue = stand.rescue_spec(spec)
    assert rescue.image is not None
    properties = {"hw_rescue_device": device[0], "hw_rescue_bus": device[1]}
    image = {**rescue.image, "properties": properties}
    asked = msgspec.structs.replace(rescue, image=image, work="2-1")
    assert require(stand.driver, Rescuable).rescue(asked) == RUNNING
    disks = stand.host.run("virsh", "domblklist", spec.uuid)
    assert "vda" in next(line for line in disks.splitlines() if line.endswith("/disk")), "it stays the first"
    assert "disk.rescue" in disks
    assert require(stand.driver, Rescuable).unrescue(spec.uuid, spec.node_uuid) == RUNNING
    assert "disk.rescue" not in stand.host.run("virsh", "domblklist", spec.uuid)
    stand.forget(spec)


class BoundPorts(PlainTaps):
    """Those that Neutron has bound to this host, plugged as it says."""

    def __init__(self, stand: LibvirtStand) -> None:
        super().__init__(stand.host)
        self._vifs = OsVifs(OsVifSettings(stand.directory / "vifs"))

    def plug(self, server: ServerSpec, port: Mapping[str, Any]) -> Vif:
        return self._vifs.plug(server, port)

    def unplug(self, server_uuid: str, vif: Vif) -> None:
        self._vifs.unplug(server_uuid, vif)


def test_a_port_that_neutron_binds_to_a_linux_bridge_is_in_it_while_the_guest_runs(
    stand: LibvirtStand,
) -> None:
    stand.taps = BoundPorts(stand)
    stand.restart()
    stand.host.run("ip", "link", "add", "brq5c1d7a52-aa", "type", "bridge")
    network = {"network_id": "5c1d7a52-aa00-4f39-9a2c-1b7f5b0f7d10", "mtu": 1400}
    bound = {**stand.port(), **network, "vif_type": "bridge", "vif_details": {}}
    spec = stand.spec(network=[bound])
    try:
        assert stand.driver.spawn(spec) == RUNNING
        plugged = stand.host.run("ip", "-o", "link", "show", "master", "brq5c1d7a52-aa")
        assert tap_of(str(bound["id"])) in plugged
        assert "mtu 1400" in plugged
        stand.forget(spec)
        assert stand.taps.plugged() == []
    finally:
        stand.host.run("ip", "link", "del", "brq5c1d7a52-aa")
