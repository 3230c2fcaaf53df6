"""What a guest is to be at its destination: the same machine, with that host's files, devices, addresses."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from moorage.drivers.libvirt.domain import domain_xml, live_xml, mark
from moorage.drivers.libvirt.host import topology_xml
from moorage.drivers.libvirt.moves.parcel import Expected
from moorage.drivers.libvirt.vifs.contract import Vif

_OF_THE_HOST = ("source", "target", "virtualport", "script", "backend")
"""What an interface has that is not the guest's."""


def render(migratable: str, path: str, expected: Expected) -> str:
    """From the XML that its source has for migrations; `path` is the server's directory there."""
    domain = live_xml.parse(migratable)
    _mark(domain, expected.node_uuid)
    _paths(domain, path, expected.path)
    _interfaces(domain, expected.vifs)
    _consoles(domain, expected)
    topology_xml.replace(domain, expected.topology)
    return domain_xml.text(domain)


def copied_disks(domain: Element, path: str) -> dict[str, str]:
    """Writable disks in the server's directory: the file's name by what libvirt calls the disk."""
    return {
        disk.target: disk.source.removeprefix(f"{path}/")
        for disk in live_xml.disks(domain)
        if disk.device == "disk" and disk.source.startswith(f"{path}/") and not disk.is_read_only
    }


def cpu(domain: Element) -> str:
    found = domain.find("cpu")
    return "" if found is None else domain_xml.text(found)


def _mark(domain: Element, node_uuid: str) -> None:
    """The destination knows its domains by its own node."""
    for element in domain.iterfind(f"metadata/{{{mark.NAMESPACE}}}server/{{{mark.NAMESPACE}}}node_uuid"):
        element.text = node_uuid


def _paths(domain: Element, here: str, there: str) -> None:
    for disk in domain.iterfind("devices/disk"):
        for chain in disk.findall("backingStore"):  # libvirt looks itself what the file there lies over
            disk.remove(chain)
    for element in domain.iter():
        for name in ("file", "path"):
            value = element.get(name, "")
            if value.startswith(f"{here}/"):
                element.set(name, there + value[len(here) :])
    for tag in ("os/kernel", "os/initrd"):
        for element in domain.iterfind(tag):
            element.text = there + (element.text or "").removeprefix(here)


def _interfaces(domain: Element, vifs: Sequence[Vif]) -> None:
    by_mac = {vif.mac.lower(): vif for vif in vifs}
    for element in domain.iterfind("devices/interface"):
        mac = element.find("mac")
        vif = by_mac.get("" if mac is None else mac.get("address", "").lower())
        if vif is None:
            continue
        there = domain_xml.interface(vif)
        element.set("type", there.get("type", ""))
        for tag in _OF_THE_HOST:
            for old in element.findall(tag):
                element.remove(old)
            element.extend(there.findall(tag))


def _consoles(domain: Element, expected: Expected) -> None:
    for element in domain.iterfind("devices/graphics[@type='vnc']"):
        element.set("port", "-1")
        element.set("autoport", "yes")
        element.set("listen", expected.vnc_listen)
        for listen in element.findall("listen"):
            element.remove(listen)
    for tag in ("serial", "console"):
        for source in domain.iterfind(f"devices/{tag}[@type='tcp']/source[@mode='bind']"):
            source.set("host", expected.serial_listen)
            source.set("service", str(expected.serial_port))
