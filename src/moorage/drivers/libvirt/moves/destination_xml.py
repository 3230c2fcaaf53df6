"""What a guest is to be at its destination: the same machine, with that host's files, devices, addresses."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from moorage.drivers.libvirt.domain import domain_xml, live_xml, mark, rewriting
from moorage.drivers.libvirt.host import topology_xml
from moorage.drivers.libvirt.moves.parcel import Expected


def render(migratable: str, path: str, expected: Expected) -> str:
    """From the XML that its source has for migrations; `path` is the server's directory there."""
    domain = live_xml.parse(migratable)
    _mark(domain, expected.node_uuid)
    rewriting.paths(domain, path, expected.path)
    if not expected.is_shared:
        rewriting.formats(domain, expected.path)
    rewriting.interfaces(domain, expected.vifs)
    rewriting.consoles(domain, expected.vnc_listen, expected.serial_listen, expected.serial_port)
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
