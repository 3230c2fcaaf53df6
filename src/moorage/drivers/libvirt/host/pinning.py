"""Pinning: from what Placement gave a server to the processors, pages and devices that its guest gets. Pure.

Placement counts; which of several equal things a guest gets is decided here, by what the other guests of the
host have. So whoever calls this makes the guest known before the next call: both under one lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from moorage.drivers.contract import NoRoomError, child_uuid
from moorage.drivers.libvirt.host import cores
from moorage.drivers.libvirt.host.children import PCPU, cell_name, device_name
from moorage.drivers.libvirt.host.machine import HostCell
from moorage.drivers.libvirt.host.pci_devices import OfferedDevice
from moorage.drivers.libvirt.host.topology import GuestCell, GuestThreads, GuestTopology, PciAddress
from moorage.topology import pages
from moorage.topology.request import TopologyRequest

Allocations = Mapping[str, Mapping[str, int]]
"""Amounts by resource class, by provider."""


@dataclass(frozen=True)
class HostLayout:
    """What of the host guests are given."""

    host: str
    node_uuid: str
    cells: tuple[HostCell, ...]
    shared: frozenset[int]
    """Empty if guests may run everywhere."""
    dedicated: frozenset[int]
    devices: Sequence[OfferedDevice] = ()

    def of_cell(self, cell: HostCell, allocations: Allocations) -> Mapping[str, int]:
        return allocations.get(child_uuid(self.node_uuid, cell_name(self.host, cell.id)), {})

    def of_unit(self, unit: PciAddress, allocations: Allocations) -> Mapping[str, int]:
        return allocations.get(child_uuid(self.node_uuid, device_name(self.host, unit)), {})


def place(
    request: TopologyRequest, layout: HostLayout, allocations: Allocations, others: Iterable[GuestTopology]
) -> GuestTopology:
    """Where the guest goes; `others` are all other guests here. NoRoomError if there is not what it needs."""
    others = list(others)
    devices = tuple(_devices(request, layout, allocations, others))
    if not request.cells:
        floating = {vcpu: tuple(sorted(layout.shared)) for vcpu in range(request.vcpus) if layout.shared}
        return GuestTopology(vcpu_pins=floating, emulator_pin=tuple(sorted(layout.shared)), devices=devices)
    taken = frozenset().union(*(other.dedicated for other in others))
    homes = _homes(request, layout, allocations, taken)
    seats = _Seats(request, layout, homes, taken)
    return GuestTopology(
        vcpu_pins=seats.pins,
        dedicated=tuple(sorted(seats.given)),
        emulator_pin=seats.emulator,
        cells=tuple(
            GuestCell(number, cell.vcpus, cell.memory_mb, home.id)
            for number, (cell, home) in enumerate(zip(request.cells, homes, strict=True))
        ),
        memory_cells=tuple(sorted({home.id for home in homes})),
        page_kib=request.page_kib,
        threads=_threads(request, seats),
        devices=devices,
    )


class _Seats:
    """Which processors the vCPUs of a guest get, cell by cell."""

    def __init__(
        self, request: TopologyRequest, layout: HostLayout, homes: Sequence[HostCell], taken: frozenset[int]
    ) -> None:
        self.pins: dict[int, tuple[int, ...]] = {}
        self.given: set[int] = set()
        self.threads: set[int] = set()
        """Of each cell, how many threads of a core its vCPUs have together."""
        self.emulator: tuple[int, ...] = tuple(sorted(layout.shared))
        for number, (cell, home) in enumerate(zip(request.cells, homes, strict=True)):
            free = (layout.dedicated & home.cpu_ids) - taken - self.given
            chosen = cores.choose(home.cpus, free, request.pcpus(number), request.thread_policy)
            if chosen is None:
                raise NoRoomError(
                    f"cell {home.id} has not the {request.pcpus(number)} processors that it needs"
                )
            self.given.update(chosen)
            self.threads.add(cores.threads_each(home.cpus, chosen))
            own = iter(chosen)
            floating = tuple(sorted(layout.shared & home.cpu_ids or layout.shared))
            for vcpu in cell.vcpus:
                if vcpu in request.dedicated:
                    self.pins[vcpu] = (next(own),)
                elif floating:
                    self.pins[vcpu] = floating
            if request.isolated_emulator and number == 0:
                self.emulator = tuple(own)
        if not self.emulator:
            self.emulator = tuple(sorted(self.given))


def _homes(
    request: TopologyRequest, layout: HostLayout, allocations: Allocations, taken: frozenset[int]
) -> list[HostCell]:
    """The host's cell for each of the guest's: no two share one, if it can be helped."""
    budgets = {
        cell.id: dict(layout.of_cell(cell, allocations)) or _free(cell, layout, taken, allocations, request)
        for cell in layout.cells
    }
    needs = [
        {PCPU: request.pcpus(number), pages.class_of(request.page_kib): request.pages(number)}
        for number in range(len(request.cells))
    ]
    by_id = {cell.id: cell for cell in layout.cells}
    found = _assign(needs, budgets, apart=True) or _assign(needs, budgets, apart=False)
    if found is None:
        raise NoRoomError("no NUMA cells of this host have what the cells of the guest need")
    return [by_id[cell_id] for cell_id in found]


def _free(
    cell: HostCell,
    layout: HostLayout,
    taken: frozenset[int],
    allocations: Allocations,
    request: TopologyRequest,
) -> dict[str, int]:
    """What a guest may have of a cell of which Placement says nothing: all, if it says nothing of any."""
    if any(layout.of_cell(other, allocations) for other in layout.cells):
        return {}
    return {
        PCPU: len((layout.dedicated & cell.cpu_ids) - taken),
        pages.class_of(request.page_kib): cell.huge_pages.get(request.page_kib, 0),
    }


def _assign(
    needs: Sequence[Mapping[str, int]], budgets: Mapping[int, Mapping[str, int]], *, apart: bool
) -> list[int] | None:
    """A cell for each of the needs, in order; the first way that there is."""
    if not needs:
        return []
    for cell_id, budget in budgets.items():
        left = {name: budget.get(name, 0) - amount for name, amount in needs[0].items()}
        if min(left.values()) < 0:
            continue
        others = {other: has for other, has in budgets.items() if other != cell_id}
        rest = _assign(needs[1:], others if apart else {**others, cell_id: {**budget, **left}}, apart=apart)
        if rest is not None:
            return [cell_id, *rest]
    return None


def _threads(request: TopologyRequest, seats: _Seats) -> GuestThreads | None:
    """A guest sees threads of a core where it has them: if all of its cells are alike."""
    sizes = {len(cell.vcpus) for cell in request.cells}
    if len(request.dedicated) != request.vcpus or len(sizes) != 1 or len(seats.threads) != 1:
        return None
    (vcpus,), (threads,) = sizes, seats.threads
    if threads == 1 or vcpus % threads or request.isolated_emulator:
        return None
    return GuestThreads(len(request.cells), vcpus // threads, threads)


def _devices(
    request: TopologyRequest,
    layout: HostLayout,
    allocations: Allocations,
    others: Sequence[GuestTopology],
) -> Iterator[PciAddress]:
    """As many of each unit and class as Placement gave, of those that no other guest has.

    A flavor may ask for them by alias, or by `resources1:CLASS`.
    """
    taken = {address for other in others for address in other.devices}
    count = 0
    for unit in sorted({one.unit for one in layout.devices}):
        for name, amount in layout.of_unit(unit, allocations).items():
            free = [
                one.device.address
                for one in layout.devices
                if one.unit == unit and one.resource_class == name and one.device.address not in taken
            ]
            if len(free) < amount:
                raise NoRoomError(f"device {unit} has no {name} left")
            yield from free[:amount]
            count += amount
    if count < sum(wanted.count for wanted in request.devices):
        raise NoRoomError("the devices that were allocated are not of this host")
