"""PCI devices as resource classes, and the aliases by which flavors ask for them (`[pci] alias`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
import os_resource_classes
import os_traits

from moorage.topology.request import PciAffinity

MANAGED_TRAIT = "COMPUTE_MANAGED_PCI_DEVICE"
"""Of every device that is given to guests by its resource class."""
_HexId = Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{4}$")]


class PciAlias(msgspec.Struct, frozen=True):
    name: str
    resource_class: str
    traits: frozenset[str] = frozenset()
    affinity: PciAffinity | None = None
    """What counts where the flavor says nothing."""


class _AliasOption(msgspec.Struct, forbid_unknown_fields=True):
    """One value of the option, in the field's own words."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    vendor_id: _HexId | None = None
    product_id: _HexId | None = None
    resource_class: str | None = None
    traits: str = ""
    device_type: str | None = None
    """Says nothing more: physical and virtual functions have different product ids."""
    capability_type: str = "pci"
    numa_policy: PciAffinity | None = None


def parse_aliases(values: Iterable[str]) -> Mapping[str, PciAlias]:
    """By name; ValueError, in words for the operator, if one makes no sense."""
    found: dict[str, PciAlias] = {}
    for value in values:
        try:
            option = msgspec.json.decode(value, type=_AliasOption)
        except msgspec.MsgspecError as error:
            raise ValueError(f"{value}: {error}") from error
        if option.name in found:
            raise ValueError(f"two aliases are called '{option.name}'")
        name = option.resource_class
        if name is None and option.vendor_id and option.product_id:
            name = class_of(option.vendor_id, option.product_id)
        if name is None:
            raise ValueError(f"alias '{option.name}' needs vendor_id and product_id, or a resource_class")
        found[option.name] = PciAlias(
            option.name, normal_class(name), normal_traits(option.traits), option.numa_policy
        )
    return found


def class_of(vendor_id: str, product_id: str) -> str:
    return f"CUSTOM_PCI_{vendor_id}_{product_id}".upper()


def normal_class(name: str) -> str:
    """A standard class by its name; any other one becomes a custom one."""
    upper = name.upper()
    if upper in os_resource_classes.STANDARDS:
        return upper
    normal: str = os_resource_classes.normalize_name(upper.removeprefix("CUSTOM_"))
    return normal


def normal_traits(names: str) -> frozenset[str]:
    """Of a list with commas; what is no standard trait becomes a custom one."""
    standard = set(os_traits.get_traits())
    upper = (name.strip().upper() for name in names.split(",") if name.strip())
    return frozenset(
        name if name in standard else os_traits.normalize_name(name.removeprefix("CUSTOM_")) for name in upper
    )
