"""A guest as it shall be at its destination."""

from __future__ import annotations

from moorage.drivers.libvirt.domain import live_xml, mark
from moorage.drivers.libvirt.host.topology import GuestTopology
from moorage.drivers.libvirt.moves import destination_xml
from moorage.drivers.libvirt.moves.parcel import Expected
from moorage.drivers.libvirt.vifs.contract import Vif

HERE, THERE = "/here/server-1", "/there/server-1"
GUEST = f"""
<domain type='kvm'>
  <metadata><m:server xmlns:m='{mark.NAMESPACE}'><m:node_uuid>a</m:node_uuid></m:server></metadata>
  <cputune><shares>5</shares><vcpupin vcpu='0' cpuset='1'/></cputune>
  <os><type arch='x86_64' machine='pc-q35-7.2'>hvm</type><kernel>{HERE}/kernel</kernel></os>
  <cpu mode='custom' match='exact'><model>EPYC</model></cpu>
  <devices>
    <disk type='file' device='disk'><source file='{HERE}/disk'/><backingStore/><target dev='vda'/></disk>
    <disk type='file' device='cdrom'><source file='{HERE}/disk.config'/><target dev='sda'/><readonly/></disk>
    <disk type='file' device='disk'><source file='/elsewhere/volume'/><target dev='vdb'/></disk>
    <interface type='bridge'>
      <mac address='FA:16:3E:00:00:01'/><source bridge='br-int'/><target dev='tap1'/><model type='virtio'/>
      <address type='pci' bus='0x01'/>
    </interface>
    <serial type='tcp'>
      <source mode='bind' host='10.0.0.1' service='10001'/><log file='{HERE}/console.log'/>
    </serial>
    <console type='tcp'><source mode='bind' host='10.0.0.1' service='10001'/></console>
    <graphics type='vnc' port='5901' listen='10.0.0.1'><listen type='address' address='10.0.0.1'/></graphics>
  </devices>
</domain>
"""
EXPECTED = Expected(
    node_uuid="b",
    uri="qemu+tcp://b/system",
    path=THERE,
    token="token",
    is_shared=False,
    sizes={},
    is_flat=False,
    address="",
    vifs=[Vif("port-1", "fa:16:3e:00:00:01", "tap1")],
    topology=GuestTopology(vcpu_pins={0: (7,)}),
    vnc_listen="10.0.0.2",
    serial_listen="10.0.0.2",
    serial_port=10007,
)


def test_files_devices_and_addresses_are_the_destination_s() -> None:
    found = live_xml.parse(destination_xml.render(GUEST, HERE, EXPECTED))
    ours = mark.read(found)
    assert ours is not None
    assert ours.node_uuid == "b"
    sources = [disk.source for disk in live_xml.disks(found)]
    assert sources == [f"{THERE}/disk", f"{THERE}/disk.config", "/elsewhere/volume"]
    assert found.find("devices/disk/backingStore") is None
    assert found.findtext("os/kernel") == f"{THERE}/kernel"
    log = found.find("devices/serial/log")
    assert log is not None
    assert log.get("file") == f"{THERE}/console.log"
    assert live_xml.serial_address(found) == ("10.0.0.2", 10007)
    console = found.find("devices/console/source")
    assert console is not None
    assert console.get("service") == "10007"
    graphics = found.find("devices/graphics")
    assert graphics is not None
    assert dict(graphics.items()) == {"type": "vnc", "port": "-1", "listen": "10.0.0.2", "autoport": "yes"}
    assert [dict(pin.items()) for pin in found.iterfind("cputune/vcpupin")] == [{"vcpu": "0", "cpuset": "7"}]
    assert found.findtext("cputune/shares") == "5"


def test_what_the_guest_sees_of_an_interface_stays() -> None:
    found = live_xml.parse(destination_xml.render(GUEST, HERE, EXPECTED))
    (interface,) = found.findall("devices/interface")
    assert interface.get("type") == "ethernet"
    assert interface.find("source") is None
    target, model, address = (interface.find(tag) for tag in ("target", "model", "address"))
    assert target is not None
    assert dict(target.items()) == {"dev": "tap1", "managed": "no"}
    assert model is not None
    assert address is not None
    assert address.get("bus") == "0x01"


def test_only_disks_that_the_server_has_for_itself_are_copied() -> None:
    """Not its config drive, which it only reads, and no volume."""
    assert destination_xml.copied_disks(live_xml.parse(GUEST), HERE) == {"vda": "disk"}
