"""Guests as libvirt's XML."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import msgspec
import pytest

from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.libvirt.actions import describing
from moorage.drivers.libvirt.domain import domain_xml, guest_options, live_xml, mark
from moorage.drivers.libvirt.settings import LibvirtSettings
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory, ServerRecord
from moorage.drivers.libvirt.vifs.contract import Vif

INSTANCES = Path("/instances")
SETTINGS = LibvirtSettings(INSTANCES, virt_type="qemu")
TAP = Vif("port-1", "fa:16:3e:00:00:01", "tapport-1", mtu=1442)
OVS = Vif(
    "port-2", "fa:16:3e:00:00:02", "tapport-2", bridge="br-int", interface_id="port-2", offloads_off=True
)


def spec(
    specs: dict[str, str] | None = None, properties: dict[str, str] | None = None, **more: Any
) -> ServerSpec:
    flavor = {"name": "small", "vcpus": 4, "ram": 512, "disk": 1, "extra_specs": specs or {}}
    image = {"id": "image-1", "properties": properties or {}}
    flavor |= more.pop("flavor", {})
    return ServerSpec("server-1", "web", "project-1", "user-1", "node-1", flavor, image, **more)


def domain(
    server: ServerSpec,
    settings: LibvirtSettings = SETTINGS,
    rescue: ServerSpec | None = None,
    vifs: list[Vif] | None = None,
    serial_port: int = 0,
) -> Element:
    options = guest_options.of(server)
    hardware = describing.hardware(options, settings, "pc-q35-7.2")
    record = ServerRecord(server, vifs or [], hardware, rescue=rescue)
    directory = ServerDirectory(INSTANCES, server.uuid, "node-1")
    guest = describing.describe(record, directory, settings, serial_port=serial_port)
    return ElementTree.fromstring(domain_xml.render(guest))


def targets(found: Element) -> list[tuple[str, str, str, str]]:
    """Each disk: what it is called, on which bus, from which file, and when it is booted from."""
    disks = []
    for disk in found.iterfind("devices/disk"):
        target, source, boot = disk.find("target"), disk.find("source"), disk.find("boot")
        assert target is not None
        assert source is not None
        name = Path(source.get("file", "")).name
        order = "" if boot is None else boot.get("order", "")
        disks.append((target.get("dev", ""), target.get("bus", ""), name, order))
    return disks


def test_a_guest_has_what_its_flavor_says_and_carries_our_mark() -> None:
    found = domain(spec(instance_name="instance-0000002a"))
    assert found.get("type") == "qemu"
    assert found.findtext("name") == "instance-0000002a"
    assert found.findtext("uuid") == "server-1"
    assert found.findtext("vcpu") == "4"
    assert found.findtext("memory") == "512"
    ours = mark.read(found)
    assert ours is not None
    assert (ours.node_uuid, ours.server_name, ours.project_id) == ("node-1", "web", "project-1")
    assert found.findtext("sysinfo/system/entry[@name='uuid']") == "server-1"
    assert live_xml.machine_type(found) == "pc-q35-7.2"
    assert len(found.findall("devices/controller[@model='pcie-root-port']")) == SETTINGS.pcie_ports


def test_a_domain_of_somebody_else_carries_no_mark() -> None:
    assert mark.read(ElementTree.fromstring("<domain><metadata><other/></metadata></domain>")) is None
    assert mark.read(ElementTree.fromstring("<domain/>")) is None


def test_names_of_servers_need_not_be_xml() -> None:
    found = domain(msgspec.structs.replace(spec(), name="<a> & \x07 'b'"))
    ours = mark.read(found)
    assert ours is not None
    assert ours.server_name == "<a> &  'b'"


def test_disks_come_in_the_order_that_guests_know() -> None:
    found = domain(spec(flavor={"ephemeral": 2, "swap": 64}, config_drive=True))
    assert targets(found) == [
        ("vda", "virtio", "disk", "1"),
        ("vdb", "virtio", "disk.eph0", ""),
        ("vdc", "virtio", "disk.swap", ""),
        ("sda", "sata", "disk.config", ""),
    ]


def test_an_image_chooses_its_buses() -> None:
    found = domain(spec(properties={"hw_disk_bus": "scsi", "hw_cdrom_bus": "scsi"}, config_drive=True))
    assert targets(found) == [("sda", "scsi", "disk", "1"), ("sdb", "scsi", "disk.config", "")]
    assert found.find("devices/controller[@type='scsi'][@model='virtio-scsi']") is not None


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, [("vda", "virtio", "disk.rescue", "1"), ("vdb", "virtio", "disk", "2")]),
        (
            {"hw_rescue_device": "cdrom", "hw_rescue_bus": "scsi"},
            [("vda", "virtio", "disk", "2"), ("sda", "scsi", "disk.rescue", "1")],
        ),
        (
            {"hw_rescue_bus": "usb"},
            [("vda", "virtio", "disk", "2"), ("sda", "usb", "disk.rescue", "1")],
        ),
    ],
)
def test_a_rescued_guest_boots_from_the_rescue_disk(
    properties: dict[str, str], expected: list[tuple[str, str, str, str]]
) -> None:
    assert targets(domain(spec(), rescue=spec(properties=properties))) == expected


def test_ports_are_devices_of_ours_or_of_libvirts_making() -> None:
    first, second = domain(spec(), vifs=[TAP, OVS]).findall("devices/interface")
    assert first.get("type") == "ethernet"
    assert first.find("target[@dev='tapport-1'][@managed='no']") is not None
    assert first.find("mtu[@size='1442']") is not None
    assert second.get("type") == "bridge"
    assert second.find("source[@bridge='br-int']") is not None
    assert second.find("virtualport[@type='openvswitch']/parameters[@interfaceid='port-2']") is not None
    assert second.find("driver/host[@csum='off']") is not None


def test_a_console_is_a_log_and_a_line_if_there_is_an_address_for_it() -> None:
    quiet = domain(spec())
    assert quiet.find("devices/serial[@type='pty']/log[@file='/instances/server-1/console.log']") is not None
    assert live_xml.serial_address(quiet) is None
    settings = LibvirtSettings(INSTANCES, virt_type="qemu", serial_listen="127.0.0.1")
    assert live_xml.serial_address(domain(spec(), settings, serial_port=10_001)) == ("127.0.0.1", 10_001)


def test_the_processor_is_what_the_settings_say_with_the_topology_that_the_flavor_says() -> None:
    settings = LibvirtSettings(
        INSTANCES, cpu_mode="custom", cpu_models=("EPYC",), cpu_features=("pcid", "-svm")
    )
    found = domain(spec({"hw:cpu_sockets": "2", "hw:cpu_cores": "2"}), settings).find("cpu")
    assert found is not None
    assert found.findtext("model") == "EPYC"
    assert found.find("topology[@sockets='2'][@cores='2'][@threads='1']") is not None
    assert found.find("feature[@name='svm'][@policy='disable']") is not None
    assert domain(spec()).find("cpu[@mode]") is None, "QEMU's own under emulation"
    with pytest.raises(DriverError, match="4 processors"):
        domain(spec({"hw:cpu_sockets": "3"}))


@pytest.mark.parametrize(
    ("specs", "shape"),
    [
        ({}, "411"),
        ({"hw:cpu_max_sockets": "2"}, "221"),
        ({"hw:cpu_max_sockets": "1", "hw:cpu_max_cores": "2"}, "122"),
        ({"hw:cpu_threads": "2"}, "212"),
        ({"hw:cpu_threads": "2", "hw:cpu_max_sockets": "1"}, "122"),
    ],
)
def test_processors_are_in_few_threads_and_many_sockets_within_what_is_allowed(
    specs: dict[str, str], shape: str
) -> None:
    topology = domain(spec(specs)).find("cpu/topology")
    assert topology is not None
    assert "".join(topology.get(name, "") for name in ("sockets", "cores", "threads")) == shape


def test_more_processors_than_are_allowed_are_refused() -> None:
    limits = {"hw:cpu_max_sockets": "1", "hw:cpu_max_cores": "1", "hw:cpu_max_threads": "2"}
    with pytest.raises(DriverError, match="at most 2 threads: the flavor has 4 processors"):
        domain(spec(limits))


def test_what_a_flavor_says_of_memory_randomness_and_counters_is_done() -> None:
    specs = {"hw:locked_memory": "true", "hw_rng:rate_bytes": "64", "hw_rng:rate_period": "100"}
    found = domain(spec({**specs, "hw:pmu": "false", "hide_hypervisor_id": "true"}))
    assert found.find("memoryBacking/locked") is not None
    assert found.find("devices/rng/rate[@bytes='64'][@period='100']") is not None
    assert found.find("features/pmu[@state='off']") is not None
    assert found.find("features/kvm/hidden[@state='on']") is not None
    plain = domain(spec())
    for path in ("memoryBacking", "devices/rng/rate", "features/pmu"):
        assert plain.find(path) is None


def test_a_kernel_beside_the_image_is_booted_directly() -> None:
    properties = {"kernel_id": "k", "ramdisk_id": "r", "os_command_line": "console=ttyS0"}
    found = domain(spec(properties=properties))
    assert found.findtext("os/kernel") == "/instances/server-1/kernel"
    assert found.findtext("os/initrd") == "/instances/server-1/ramdisk"
    assert found.findtext("os/cmdline") == "console=ttyS0 no_timer_check"


def test_limits_and_devices_that_flavors_and_images_ask_for() -> None:
    found = domain(
        spec(
            {"quota:cpu_quota": "5000", "quota:disk_read_iops_sec": "100", "hw:watchdog_action": "reset"},
            {"hw_qemu_guest_agent": "yes", "hw_video_model": "vga", "hw_vif_model": "e1000"},
        ),
        vifs=[TAP],
    )
    assert found.findtext("cputune/quota") == "5000"
    assert found.findtext("devices/disk/iotune/read_iops_sec") == "100"
    assert found.find("devices/watchdog[@action='reset']") is not None
    assert found.find(f"devices/channel/target[@name='{domain_xml.AGENT_CHANNEL}']") is not None
    assert found.find("devices/video/model[@type='vga']") is not None
    assert found.find("devices/interface/model[@type='e1000']") is not None


@pytest.mark.parametrize(
    ("specs", "properties"),
    [
        ({"hw:tpm_version": "2.0"}, {}),
        ({"os:secure_boot": "required"}, {}),
        ({}, {"hw_mem_encryption": "true"}),
        ({}, {"hw_disk_bus": "floppy"}),
        ({}, {"hw_video_ram": "64"}),
        ({"hw:serial_port_count": "1"}, {"hw_serial_port_count": "2"}),
        ({"quota:cpu_shares": "many"}, {}),
        ({}, {"hw_watchdog_action": "bark"}),
        ({"hw:cpu_realtime_mask": "^0"}, {}),
        ({}, {"hw_firmware_stateless": "true"}),
    ],
)
def test_what_a_guest_would_not_get_is_refused(specs: dict[str, str], properties: dict[str, str]) -> None:
    with pytest.raises(DriverError):
        guest_options.of(spec(specs, properties))


def test_what_asks_for_nothing_is_not_refused() -> None:
    options = guest_options.of(
        spec({"hw:mem_encryption": "false", "unknown:thing": "1"}, {"os_distro": "debian"})
    )
    assert options == guest_options.GuestOptions()
