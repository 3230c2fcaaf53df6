"""A guest as Nova's driver leaves it on a host: its domain, its directory, and what is beside that."""

from __future__ import annotations

import shutil
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.integration.libvirt.stand import MEMORY_MB
from tests.lab.libvirt.hosts import LibvirtHost
from tests.support.processes import wait_until

BASE = "5b1c1ef2b5a3e0a1d1f9e6b0a6a2f4c8d7e90123"
"""Nova calls an image's file after a checksum of its id."""
_METADATA = """
<nova:instance xmlns:nova="http://openstack.org/xmlns/libvirt/nova/1.1">
  <nova:package version="34.0.0"/>
  <nova:name>left behind</nova:name>
  <nova:creationTime>2026-11-17 20:00:00</nova:creationTime>
  <nova:flavor name="m1.tiny" id="1">
    <nova:memory>{memory}</nova:memory>
    <nova:disk>1</nova:disk>
    <nova:swap>{swap}</nova:swap>
    <nova:ephemeral>{ephemeral}</nova:ephemeral>
    <nova:vcpus>1</nova:vcpus>
  </nova:flavor>
  <nova:owner>
    <nova:user uuid="user-1">demo</nova:user>
    <nova:project uuid="project-1">demo</nova:project>
  </nova:owner>
  <nova:root type="image" uuid="{image}"/>
  <nova:ports>{ports}</nova:ports>
</nova:instance>
"""
_PORT = """
    <nova:port uuid="{id}"><nova:ip type="fixed" address="10.0.0.6" ipVersion="4"/></nova:port>
"""
_DOMAIN = """
<domain type="qemu">
  <name>instance-0000002a</name>
  <uuid>{uuid}</uuid>
  <metadata>{metadata}</metadata>
  <memory unit="MiB">{memory}</memory>
  <vcpu>1</vcpu>
  <sysinfo type="smbios"><system><entry name="manufacturer">OpenStack Foundation</entry></system></sysinfo>
  <os><type machine="pc">hvm</type><boot dev="hd"/><smbios mode="sysinfo"/></os>
  <features><acpi/><apic/></features>
  <devices>
    <disk type="file" device="disk">
      <driver name="qemu" type="qcow2" cache="writeback"/>
      <source file="{directory}/disk"/>
      <target dev="vda" bus="virtio"/>
      <address type="pci" domain="0x0000" bus="0x00" slot="0x12" function="0x0"/>
    </disk>
    {further}
    {interface}
    <serial type="pty"><log file="{directory}/console.log" append="off"/></serial>
  </devices>
</domain>
"""


_INTERFACE = """
    <interface type="ethernet">
      <mac address="{mac}"/>
      <target dev="{tap}" managed="no"/>
      <model type="virtio"/>
      <address type="pci" domain="0x0000" bus="0x00" slot="0x11" function="0x0"/>
    </interface>
"""
_FURTHER = """
    <disk type="file" device="disk">
      <driver name="qemu" type="qcow2" cache="writeback"/>
      <source file="{directory}/{name}"/>
      <target dev="{target}" bus="virtio"/>
    </disk>
"""


@dataclass(kw_only=True)
class NovaGuest:
    host: LibvirtHost
    instances: Path
    image_id: str
    port: Mapping[str, Any] | None
    content: Path | None = None
    """A raw disk, which it boots from; else it has nothing to boot."""
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    has_further_disks: bool = False
    """An ephemeral disk of 1 GiB, full of 0xAB in the beginning, and 1 MiB to swap to."""

    def __post_init__(self) -> None:
        """It runs from now on."""
        self._make_disk()
        (self.instances / "compute_nodes").write_text("{}")
        xml = self.directory / "libvirt.xml"
        xml.write_text(self._described())
        if self.port is not None:
            self.run("ip", "tuntap", "add", self.tap, "mode", "tap")
            self.run("ip", "link", "set", self.tap, "up")
        self.run("virsh", "define", xml)
        self.run("virsh", "start", self.uuid)
        wait_until(lambda: self.state() == "running", "the guest to run", 60)

    def _described(self) -> str:
        port, has = self.port, int(self.has_further_disks)
        told = {"memory": MEMORY_MB, "image": self.image_id, "swap": has, "ephemeral": has}
        metadata = _METADATA.format(**told, ports="" if port is None else _PORT.format(**port))
        interface = "" if port is None else _INTERFACE.format(mac=port["mac"], tap=self.tap)
        further = "".join(
            _FURTHER.format(directory=self.directory, name=name, target=target)
            for name, target in ([("disk.eph0", "vdb"), ("disk.swap", "vdc")] if has else [])
        )
        own = {"uuid": self.uuid, "directory": self.directory, "interface": interface, "further": further}
        return _DOMAIN.format(metadata=metadata, memory=MEMORY_MB, **own)

    @property
    def tap(self) -> str:
        assert self.port is not None
        return f"tap{str(self.port['id'])[:11]}"

    @property
    def directory(self) -> Path:
        return self.instances / self.uuid

    @property
    def base(self) -> Path:
        return self.instances / "_base" / BASE

    def run(self, *words: str | Path) -> str:
        return self.host.run(*words)

    def state(self) -> str:
        return self.run("virsh", "domstate", self.uuid).strip()

    def pid(self) -> int | None:
        return self.host.guest_pids().get(self.uuid)

    def clear_up(self) -> None:
        """What no driver removes: it is Nova's."""
        (self.instances / "compute_nodes").unlink()
        for path in (self.base, *self.base.parent.glob("*_1")):
            path.unlink()

    def _make_disk(self) -> None:
        self.directory.mkdir(mode=0o755, parents=True)
        self.base.parent.mkdir(exist_ok=True)
        if self.content is None:
            _image("create", "-f", "raw", self.base, "64M")
        else:
            shutil.copy(self.content, self.base)
        self._make_overlay(self.base, "disk", "1G")
        if self.has_further_disks:
            for name, base, size in (("disk.eph0", "ephemeral_1", "1G"), ("disk.swap", "swap_1", "1M")):
                _image("create", "-f", "raw", self.base.with_name(base), size)
                self._make_overlay(self.base.with_name(base), name, size)
            path = self.directory / "disk.eph0"
            subprocess.run(["qemu-io", "-f", "qcow2", "-c", "write -P 0xab 0 64k", str(path)], check=True)

    def _make_overlay(self, base: Path, name: str, size: str) -> None:
        _image("create", "-f", "qcow2", "-F", "raw", "-b", base, self.directory / name, size)


def _image(command: str, *words: str | Path) -> None:
    subprocess.run(["qemu-img", command, "-q", *map(str, words)], check=True)
