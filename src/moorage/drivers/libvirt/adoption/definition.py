"""The definition that another system has given a guest, kept on another host and with another flavor. Pure.

Devices stay what they are, where the guest has found them: a card that came to another slot would be a new
one to it, without its addresses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from moorage.drivers.contract import ServerSpec
from moorage.drivers.libvirt.domain import domain_xml, live_xml, mark, rewriting
from moorage.drivers.libvirt.domain.description import DiskDevice, DomainMark
from moorage.drivers.libvirt.host import topology_xml
from moorage.drivers.libvirt.host.topology import GuestTopology
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory
from moorage.drivers.libvirt.vifs.contract import Vif

_PLACES = (
    *(("cputune", "vcpupin"), ("cputune", "emulatorpin"), (".", "numatune")),
    *(("cpu", "numa"), ("memoryBacking", "hugepages"), ("devices", "hostdev")),
)
"""What a domain says of processors, memory and devices of the host, and where."""


def moved(definition: str, there: Path) -> str:
    """To another host, with all files of the server's directory."""
    domain = live_xml.parse(definition)
    sources = (Path(disk.source) for disk in live_xml.disks(domain))
    here = next((path.parent for path in sources if path.name == "disk"), there)
    rewriting.paths(domain, str(here), str(there))
    return domain_xml.text(domain)


def settled(definition: str, directory: ServerDirectory) -> str:
    """With disks that are such as ours are."""
    domain = live_xml.parse(definition)
    rewriting.paths(domain, str(directory.path), str(directory.path))  # what they lay over is not so any more
    rewriting.formats(domain, str(directory.path))
    return domain_xml.text(domain)


def fitted(
    definition: str, spec: ServerSpec, topology: GuestTopology, directory: ServerDirectory, disk_cache: str
) -> str:
    """To what the flavor says, and to where on its host the guest is."""
    domain = live_xml.parse(definition)
    _resize(domain, spec.flavor)
    for path, size in ((directory.ephemeral, "ephemeral"), (directory.swap, "swap")):
        _have_disk(domain, path, bool(spec.flavor.get(size)), disk_cache)
    _place(domain, topology)
    return domain_xml.text(domain)


def here(
    definition: str,
    name: str,
    marked: DomainMark,
    vifs: Sequence[Vif],
    consoles: tuple[str, str, int],
) -> str:
    """As this host starts it; `consoles` are where screens and serial lines listen, and at which port."""
    domain = live_xml.parse(definition)
    for element in domain.findall("name"):
        element.text = name
    _mark(domain, marked)
    _have_interfaces(domain, vifs)
    rewriting.consoles(domain, *consoles)
    return domain_xml.text(domain)


def _resize(domain: Element, flavor: Mapping[str, Any]) -> None:
    vcpu = domain.find("vcpu")
    assert vcpu is not None, "every domain has one"
    before, vcpus = int(vcpu.text or 1), int(flavor.get("vcpus") or 1)
    vcpu.text = str(vcpus)
    for found in domain.findall("cputune/shares"):
        found.text = str(int(found.text or 0) * vcpus // before)
    for found in domain.findall("cpu/topology"):
        if vcpus != before:
            found.attrib.clear()
            found.attrib.update({"sockets": str(vcpus), "cores": "1", "threads": "1"})
    for tag in ("memory", "currentMemory"):
        for found in domain.findall(tag):
            found.set("unit", "MiB")
            found.text = str(int(flavor.get("ram") or 512))


def _place(domain: Element, topology: GuestTopology) -> None:
    for vcpu in domain.findall("vcpu"):
        for told in ("cpuset", "current"):
            vcpu.attrib.pop(told, None)
    for parent, tag in _PLACES:
        for element in domain.findall(parent):
            for old in element.findall(tag):
                element.remove(old)
    topology_xml.put(domain, topology)


def _have_disk(domain: Element, path: Path, wanted: bool, cache: str) -> None:
    devices, disks = domain.find("devices"), live_xml.disks(domain)
    assert devices is not None, "every domain has some"
    known = [disk for disk in devices.findall("disk") if disk.find(f"source[@file='{path}']") is not None]
    if wanted and not known:
        bus = _bus_of_root(devices)
        prefix = next((disk.target[:-1] for disk in disks if disk.device == "disk"), "vd")
        used = {disk.target for disk in disks}
        target = next(prefix + letter for letter in ascii_lowercase if prefix + letter not in used)
        devices.append(domain_xml.disk(DiskDevice(path, "raw", bus, target, cache=cache)))
    for disk in [] if wanted else known:
        devices.remove(disk)


def _bus_of_root(devices: Element) -> str:
    found = devices.find("disk[@device='disk']/target")
    return "virtio" if found is None else found.get("bus", "virtio")


def _have_interfaces(domain: Element, vifs: Sequence[Vif]) -> None:
    """Those that it has, as they are plugged here; those that came or went since."""
    devices = domain.find("devices")
    assert devices is not None, "every domain has some"
    rewriting.interfaces(domain, vifs)
    known = {rewriting.mac_of(element): element for element in devices.findall("interface")}
    wanted = {vif.mac.lower(): vif for vif in vifs}
    for mac in known.keys() - wanted.keys():
        devices.remove(known[mac])
    devices.extend(domain_xml.interface(vif) for mac, vif in wanted.items() if mac not in known)


def _mark(domain: Element, marked: DomainMark) -> None:
    metadata = domain.find("metadata")
    if metadata is None:
        metadata = SubElement(domain, "metadata")
    for old in metadata.findall(f"{{{mark.NAMESPACE}}}server"):
        metadata.remove(old)
    metadata.append(mark.element(marked))
