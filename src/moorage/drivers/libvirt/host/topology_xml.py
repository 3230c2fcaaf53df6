"""Where a guest is, as libvirt's XML says it."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement

from moorage.drivers.libvirt.host.topology import GuestTopology, PciAddress
from moorage.topology.cpu_set import format_cpu_set


def put(domain: Element, topology: GuestTopology) -> None:
    """Into the domain of a guest, beside what it says already; nothing for a plain guest."""
    _pins(domain, topology)
    _memory_cells(domain, topology)
    if topology.page_kib:
        huge = SubElement(_child(domain, "memoryBacking"), "hugepages")
        SubElement(huge, "page", {"size": str(topology.page_kib), "unit": "KiB"})
    if topology.cells:
        numa = SubElement(_child(domain, "cpu"), "numa")
        for cell in topology.cells:
            cpus, memory = format_cpu_set(cell.vcpus), str(cell.memory_mb)
            SubElement(numa, "cell", {"id": str(cell.id), "cpus": cpus, "memory": memory, "unit": "MiB"})
    devices = _child(domain, "devices") if topology.devices else domain
    for address in topology.devices:
        devices.append(_hostdev(address))


def replace(domain: Element, topology: GuestTopology) -> None:
    """Into the domain of a guest that moves while it runs: what it sees itself stays as it is."""
    for tune in domain.findall("cputune"):
        for tag in ("vcpupin", "emulatorpin"):
            for pin in tune.findall(tag):
                tune.remove(pin)
    for tune in domain.findall("numatune"):
        domain.remove(tune)
    _pins(domain, topology)
    _memory_cells(domain, topology)


def _pins(domain: Element, topology: GuestTopology) -> None:
    if not topology.vcpu_pins and not topology.emulator_pin:
        return
    tune = _child(domain, "cputune")
    for vcpu, cpus in sorted(topology.vcpu_pins.items()):
        SubElement(tune, "vcpupin", {"vcpu": str(vcpu), "cpuset": format_cpu_set(cpus)})
    if topology.emulator_pin:
        SubElement(tune, "emulatorpin", {"cpuset": format_cpu_set(topology.emulator_pin)})


def _memory_cells(domain: Element, topology: GuestTopology) -> None:
    if not topology.memory_cells:
        return
    tune = SubElement(domain, "numatune")
    nodes = format_cpu_set(topology.memory_cells)
    SubElement(tune, "memory", {"mode": "strict", "nodeset": nodes})
    for cell in topology.cells:
        SubElement(
            tune, "memnode", {"cellid": str(cell.id), "mode": "strict", "nodeset": str(cell.host_cell)}
        )


def _hostdev(address: PciAddress) -> Element:
    made = Element("hostdev", {"mode": "subsystem", "type": "pci", "managed": "yes"})
    parts = {
        "domain": f"0x{address.domain:04x}",
        "bus": f"0x{address.bus:02x}",
        "slot": f"0x{address.slot:02x}",
        "function": f"0x{address.function:x}",
    }
    SubElement(SubElement(made, "source"), "address", parts)
    return made


def _child(parent: Element, tag: str) -> Element:
    found = parent.find(tag)
    return SubElement(parent, tag) if found is None else found
