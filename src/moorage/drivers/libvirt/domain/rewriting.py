"""The parts of a domain's XML that are its host's, made another one's; what the guest sees stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from moorage.drivers.libvirt.domain import domain_xml
from moorage.drivers.libvirt.vifs.contract import Vif

_OF_THE_HOST = ("source", "target", "virtualport", "script", "backend")
"""What an interface has that is not the guest's."""
_FORMATS = {"disk": "qcow2", "disk.eph0": "raw", "disk.swap": "raw"}
"""Of the disks in a server's directory, as we make them."""


def paths(domain: Element, here: str, there: str) -> None:
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


def formats(domain: Element, directory: str) -> None:
    """Of files that were made as ours are, whoever has defined the guest."""
    for disk in domain.iterfind("devices/disk"):
        source, driver = disk.find("source"), disk.find("driver")
        place, _, name = ("" if source is None else source.get("file", "")).rpartition("/")
        if driver is not None and place == directory and name in _FORMATS:
            driver.set("type", _FORMATS[name])


def interfaces(domain: Element, vifs: Sequence[Vif]) -> None:
    by_mac = {vif.mac.lower(): vif for vif in vifs}
    for element in domain.iterfind("devices/interface"):
        vif = by_mac.get(mac_of(element))
        if vif is None:
            continue
        there = domain_xml.interface(vif)
        element.set("type", there.get("type", ""))
        for tag in _OF_THE_HOST:
            for old in element.findall(tag):
                element.remove(old)
            element.extend(there.findall(tag))


def mac_of(interface: Element) -> str:
    mac = interface.find("mac")
    return "" if mac is None else mac.get("address", "").lower()


def consoles(domain: Element, vnc_listen: str, serial_listen: str, serial_port: int) -> None:
    """`serial_port` 0: nobody listens there."""
    for element in domain.iterfind("devices/graphics[@type='vnc']"):
        element.set("port", "-1")
        element.set("autoport", "yes")
        element.set("listen", vnc_listen)
        for listen in element.findall("listen"):
            element.remove(listen)
    for tag in ("serial", "console"):
        for log in domain.iterfind(f"devices/{tag}/log"):
            log.set("append", "on")  # what the guest has said before it came here is in there
        for line in domain.iterfind(f"devices/{tag}[@type='tcp']"):
            for source in line.findall("source[@mode='bind']"):
                source.set("host", serial_listen)
                source.set("service", str(serial_port))
                if not serial_port:
                    _unlisten(line)


def _unlisten(line: Element) -> None:
    line.set("type", "pty")
    for tag in ("source", "protocol"):
        for found in line.findall(tag):
            line.remove(found)
