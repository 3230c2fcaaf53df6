"""What `virsh` alone does: guests like a server of Moorage's, with nobody who keeps books."""

from __future__ import annotations

import subprocess
import uuid
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.libvirt.hosts import LibvirtHost, LibvirtLab


@dataclass
class Alone:
    """Copies of one server, each with an overlay of its own over the same image."""

    lab: LibvirtLab
    pattern: str
    """XML of the server that they are copies of."""
    server: str
    base: Path
    """The image, as hosts see it."""
    directory: Path
    """For their disks, on all hosts."""
    made: list[str] = field(default_factory=list)

    @classmethod
    def like(cls, lab: LibvirtLab, host: LibvirtHost, server: str, instances: Path) -> Alone:
        directory = lab.shared / "alone"
        directory.mkdir(exist_ok=True)
        base = directory / "base"
        base.write_bytes((instances / server / "disk.base").read_bytes())
        return cls(lab, host.run("virsh", "dumpxml", "--inactive", server), server, base, directory)

    def boot(self, host: LibvirtHost) -> str:
        name = str(uuid.uuid4())
        disk = self.directory / f"{name}.qcow2"
        made = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(self.base), str(disk), "1G"]
        subprocess.run(made, check=True)
        self.plug(host, name)
        described = self.directory / f"{name}.xml"
        described.write_text(self._xml(name, disk))
        host.run("virsh", "define", described)
        host.run("virsh", "start", name)
        self.made.append(name)
        return name

    def delete(self, host: LibvirtHost, name: str) -> None:
        host.run("virsh", "destroy", name, check=False)
        host.run("virsh", "undefine", name, check=False)
        self.unplug(host, name)
        for path in self.directory.glob(f"{name}*"):
            path.unlink()
        self.made.remove(name)

    def plug(self, host: LibvirtHost, name: str) -> None:
        host.run("ip", "tuntap", "add", _tap(name), "mode", "tap")
        host.run("ip", "link", "set", _tap(name), "up")

    def unplug(self, host: LibvirtHost, name: str) -> None:
        host.run("ip", "link", "del", _tap(name), check=False)

    def console_log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def migrate(self, source: LibvirtHost, target: LibvirtHost, name: str) -> None:
        words = ("--live", "--persistent", "--undefinesource", "--unsafe")
        source.run("virsh", "migrate", *words, name, f"qemu+tcp://{target.address}/system")

    def _xml(self, name: str, disk: Path) -> str:
        domain = ET.fromstring(self.pattern)
        for tag in ("metadata", "sysinfo"):
            for found in domain.findall(tag):
                domain.remove(found)
        _require(domain, "name").text = name
        _require(domain, "uuid").text = name
        smbios = domain.find("os/smbios")
        if smbios is not None:
            _require(domain, "os").remove(smbios)
        devices = _require(domain, "devices")
        for target in devices.findall("interface/target"):
            target.set("dev", _tap(name))
        for found in devices.findall("disk"):
            if found.get("device") == "disk":
                _require(found, "source").set("file", str(disk))
                for backing in found.findall("backingStore"):
                    found.remove(backing)
            else:
                devices.remove(found)
        for log in devices.findall("*/log"):
            log.set("file", str(self.console_log(name)))
        for source in devices.findall("serial/source"):
            if source.get("path"):
                source.set("path", str(self.console_log(name)))
        return ET.tostring(domain, encoding="unicode")


def _tap(name: str) -> str:
    return f"vt{name[:10]}"


def _require(parent: ET.Element, tag: str) -> ET.Element:
    found = parent.find(tag)
    assert found is not None, tag
    return found
