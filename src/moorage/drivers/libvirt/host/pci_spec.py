"""Which PCI devices guests are given: the option `[pci] device_spec`, in the field's own words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Protocol

import msgspec

from moorage.core.config import ConfigError
from moorage.drivers.libvirt.host.topology import PciAddress
from moorage.topology import pci

_HexId = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-fA-F]{4}|\*)$")]
_GLOB = re.compile(r"[0-9a-fA-F*]{1,4}:[0-9a-fA-F*]{1,2}:[0-9a-fA-F*]{1,2}\.[0-7*]|\*")


class Described(Protocol):
    """A device, as far as a spec looks at it."""

    @property
    def address(self) -> PciAddress: ...

    @property
    def vendor_id(self) -> str: ...

    @property
    def product_id(self) -> str: ...


class DeviceSpec(msgspec.Struct, frozen=True):
    vendor_id: str = "*"
    product_id: str = "*"
    address: str = "*"
    """With `*` for any part of it."""
    resource_class: str = ""
    """Empty for the one that follows from vendor and product."""
    traits: frozenset[str] = frozenset()

    def names(self, device: Described) -> bool:
        return (
            fnmatchcase(device.vendor_id, self.vendor_id)
            and fnmatchcase(device.product_id, self.product_id)
            and fnmatchcase(str(device.address), self.address)
        )


class _SpecOption(msgspec.Struct, forbid_unknown_fields=True):
    """What the option may say; this driver has no ports of hardware, and so no `physical_network`."""

    vendor_id: _HexId = "*"
    product_id: _HexId = "*"
    address: str = "*"
    resource_class: str = ""
    traits: str = ""


def parse_device_specs(values: Iterable[str]) -> tuple[DeviceSpec, ...]:
    """ConfigError if one makes no sense."""
    found: list[DeviceSpec] = []
    for value in values:
        try:
            options = msgspec.json.decode(value, type=list[_SpecOption] | _SpecOption)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"[pci] device_spec: {value}: {error}") from error
        found += [_spec(option) for option in (options if isinstance(options, list) else [options])]
    return tuple(found)


def _spec(option: _SpecOption) -> DeviceSpec:
    if not _GLOB.fullmatch(option.address):
        raise ConfigError(f"[pci] device_spec: '{option.address}' is no address such as 0000:81:00.* or *")
    return DeviceSpec(
        vendor_id=option.vendor_id.lower(),
        product_id=option.product_id.lower(),
        address=option.address.lower(),
        resource_class=pci.normal_class(option.resource_class) if option.resource_class else "",
        traits=pci.normal_traits(option.traits),
    )
