"""What is below a host's node in Placement: NUMA cells with dedicated processors and huge pages, PCI devices.

A host where none of this is configured has no children at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from moorage.drivers.contract import ChildProvider, Holding, Inventory, child_uuid
from moorage.drivers.libvirt.host.machine import HostCell
from moorage.drivers.libvirt.host.pci_devices import OfferedDevice
from moorage.drivers.libvirt.host.topology import GuestTopology, PciAddress
from moorage.topology import pages

CELL_TRAIT = "HW_NUMA_ROOT"
PCPU = "PCPU"

ReservedPages = Mapping[tuple[int, int], int]
"""How many huge pages are not for guests, by cell and size in KiB."""


def cell_name(host: str, cell: int) -> str:
    return f"{host}_NUMA{cell}"


def device_name(host: str, unit: PciAddress) -> str:
    return f"{host}_{unit}"


def of_host(
    host: str,
    cells: Sequence[HostCell],
    dedicated: frozenset[int],
    reserved_pages: ReservedPages,
    devices: Sequence[OfferedDevice],
) -> tuple[ChildProvider, ...]:
    found = [
        ChildProvider(cell_name(host, cell.id), inventories, [CELL_TRAIT])
        for cell in cells
        if (inventories := _of_cell(cell, dedicated, reserved_pages))
    ]
    return (*found, *_of_devices(host, devices, {child.name for child in found}))


def huge_pages_kib(cells: Iterable[HostCell]) -> int:
    """Memory that no guest has but one of huge pages, whether they are for guests or not."""
    return sum(kib * count for cell in cells for kib, count in cell.huge_pages.items())


def holdings(
    host: str,
    node_uuid: str,
    cells: Sequence[HostCell],
    devices: Sequence[OfferedDevice],
    guests: Mapping[str, GuestTopology],
) -> tuple[Holding, ...]:
    """What servers have of these children, as their guests do."""
    by_address = {one.device.address: one for one in devices}
    found: list[Holding] = []
    for server_uuid, guest in guests.items():
        held: dict[str, dict[str, int]] = {}
        for cell in cells:
            _count(held, cell_name(host, cell.id), PCPU, len(cell.cpu_ids.intersection(guest.dedicated)))
        for part in guest.cells if guest.page_kib else ():
            count = part.memory_mb * 1024 // guest.page_kib
            _count(held, cell_name(host, part.host_cell), pages.class_of(guest.page_kib), count)
        for one in (by_address[address] for address in guest.devices if address in by_address):
            _count(held, device_name(host, one.unit), one.resource_class, 1)
        found += [
            Holding(server_uuid, child_uuid(node_uuid, name), amounts)
            for name, amounts in sorted(held.items())
        ]
    return tuple(found)


def _count(held: dict[str, dict[str, int]], name: str, resource_class: str, amount: int) -> None:
    if amount:
        amounts = held.setdefault(name, {})
        amounts[resource_class] = amounts.get(resource_class, 0) + amount


def _of_cell(
    cell: HostCell, dedicated: frozenset[int], reserved_pages: ReservedPages
) -> dict[str, Inventory]:
    amounts = {PCPU: len(dedicated & cell.cpu_ids)}
    for kib, count in cell.huge_pages.items():
        amounts[pages.class_of(kib)] = count - reserved_pages.get((cell.id, kib), 0)
    return {name: Inventory(total=amount, max_unit=amount) for name, amount in amounts.items() if amount > 0}


def _of_devices(host: str, devices: Sequence[OfferedDevice], cells: set[str]) -> list[ChildProvider]:
    """One for each device, or for all virtual functions of one; below its cell, if that has a provider."""
    units: dict[PciAddress, list[OfferedDevice]] = {}
    for one in devices:
        units.setdefault(one.unit, []).append(one)
    found = []
    for unit, members in sorted(units.items()):
        counts: dict[str, int] = {}
        for one in members:
            counts[one.resource_class] = counts.get(one.resource_class, 0) + 1
        cell = members[0].device.cell
        parent = "" if cell is None else cell_name(host, cell)
        found.append(
            ChildProvider(
                device_name(host, unit),
                {name: Inventory(total=count, max_unit=count) for name, count in counts.items()},
                sorted(frozenset().union(*(one.traits for one in members))),
                parent if parent in cells else "",
            )
        )
    return found
