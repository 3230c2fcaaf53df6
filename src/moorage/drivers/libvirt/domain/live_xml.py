"""What the XML of a domain says that is there: addresses, devices, files."""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import msgspec


class LiveInterface(msgspec.Struct, frozen=True):
    mac: str
    tap: str
    kind: str
    """As libvirt calls it: `ethernet`, `bridge`."""
    element: str
    """The whole of it: what a detach wants."""


class LiveDisk(msgspec.Struct, frozen=True):
    target: str
    source: str
    format: str
    device: str
    is_mirrored: bool
    is_read_only: bool = False


def parse(xml: str) -> Element:
    return ElementTree.fromstring(xml)


def interfaces(domain: Element) -> list[LiveInterface]:
    found = []
    for one in domain.iterfind("devices/interface"):
        mac, target = one.find("mac"), one.find("target")
        found.append(
            LiveInterface(
                "" if mac is None else mac.get("address", "").lower(),
                "" if target is None else target.get("dev", ""),
                one.get("type", ""),
                ElementTree.tostring(one, encoding="unicode"),
            )
        )
    return found


def interface(domain: Element, mac: str) -> LiveInterface | None:
    return next((one for one in interfaces(domain) if one.mac == mac.lower()), None)


def disks(domain: Element) -> list[LiveDisk]:
    found = []
    for one in domain.iterfind("devices/disk"):
        source, target, driver = one.find("source"), one.find("target"), one.find("driver")
        found.append(
            LiveDisk(
                "" if target is None else target.get("dev", ""),
                "" if source is None else source.get("file", ""),
                "" if driver is None else driver.get("type", ""),
                one.get("device", "disk"),
                one.find("mirror") is not None,
                one.find("readonly") is not None,
            )
        )
    return found


def graphics_address(domain: Element, kind: str = "vnc") -> tuple[str, int] | None:
    """Where a running guest shows its screen."""
    for one in domain.iterfind("devices/graphics"):
        port = int(one.get("port") or -1)
        if one.get("type") == kind and port > 0:
            return one.get("listen") or "127.0.0.1", port
    return None


def serial_address(domain: Element) -> tuple[str, int] | None:
    source = _serial_source(domain)
    return None if source is None else (source.get("host") or "127.0.0.1", int(source.get("service") or 0))


def serial_has_tls(domain: Element) -> bool:
    """As libvirt has started it: `chardev_tls` of its qemu.conf decides, unless the XML did."""
    source = _serial_source(domain)
    return source is not None and source.get("tls") == "yes"


def _serial_source(domain: Element) -> Element | None:
    for one in domain.iterfind("devices/serial[@type='tcp']"):
        source = one.find("source")
        if source is not None and source.get("mode") == "bind":
            return source
    return None


def machine_type(domain: Element) -> str:
    found = domain.find("os/type")
    return "" if found is None else found.get("machine", "")
