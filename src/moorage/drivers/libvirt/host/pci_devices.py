"""PCI devices of the host, as libvirt's node devices describe them, and those that guests are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import msgspec

from moorage.drivers.libvirt.host.pci_spec import DeviceSpec
from moorage.drivers.libvirt.host.topology import PciAddress
from moorage.topology import pci


class PciType(StrEnum):
    """As the field's options call them."""

    DEVICE = "type-PCI"
    PHYSICAL = "type-PF"
    VIRTUAL = "type-VF"


class PciDevice(msgspec.Struct, frozen=True):
    address: PciAddress
    vendor_id: str
    product_id: str
    type: PciType
    cell: int | None = None
    """The NUMA cell that it is near to."""
    physical: PciAddress | None = None
    """Of a virtual function, the device that it is a part of."""


class OfferedDevice(msgspec.Struct, frozen=True):
    """A device that guests may be given."""

    device: PciDevice
    resource_class: str
    traits: frozenset[str]

    @property
    def unit(self) -> PciAddress:
        """What its provider stands for: virtual functions are told together, as their physical one."""
        return self.device.physical or self.device.address


def parse_node_device(xml: str) -> PciDevice | None:
    """None if it is no PCI device."""
    capability = ElementTree.fromstring(xml).find("./capability[@type='pci']")
    if capability is None:
        return None
    physical = capability.find("./capability[@type='phys_function']/address")
    virtual = capability.find("./capability[@type='virt_functions']")
    numa = capability.find("numa")
    kind = PciType.DEVICE
    if physical is not None:
        kind = PciType.VIRTUAL
    elif virtual is not None:
        kind = PciType.PHYSICAL
    return PciDevice(
        address=PciAddress(*(int(capability.findtext(name, "0")) for name in _PARTS)),
        vendor_id=_hex_id(capability, "vendor"),
        product_id=_hex_id(capability, "product"),
        type=kind,
        cell=None if numa is None else int(numa.get("node", 0)),
        physical=None
        if physical is None
        else PciAddress(*(int(physical.get(name, "0"), 16) for name in _PARTS)),
    )


_PARTS = ("domain", "bus", "slot", "function")


def offered(devices: Iterable[PciDevice], specs: Sequence[DeviceSpec]) -> list[OfferedDevice]:
    """Those that a spec names, the first that does; a physical function is not, if its virtual ones are."""
    found = []
    for device in sorted(devices, key=lambda device: device.address):
        spec = next((spec for spec in specs if spec.names(device)), None)
        if spec is not None:
            name = spec.resource_class or pci.class_of(device.vendor_id, device.product_id)
            found.append(OfferedDevice(device, name, spec.traits | {pci.MANAGED_TRAIT}))
    split = {one.device.physical for one in found}
    return [one for one in found if one.device.address not in split]


def _hex_id(capability: Element, name: str) -> str:
    element = capability.find(name)
    return "" if element is None else element.get("id", "").removeprefix("0x").lower()
