"""What a server asks of where on a host it is put, as request groups.

Each NUMA cell of the guest is a group, so that its processors and huge pages come from one cell of the host.
A host without cells, whose processors are all its own, serves such a group as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from moorage.scheduler.errors import SchedulingError
from moorage.scheduler.groups import RequestGroup
from moorage.topology import pages
from moorage.topology.pci import PciAlias
from moorage.topology.request import PciAffinity, ThreadPolicy, TopologyRequest

HYPERTHREADING = "HW_CPU_HYPERTHREADING"
SOCKET_AFFINITY = "COMPUTE_SOCKET_PCI_NUMA_AFFINITY"
_CELL = "_cell{number}"
_DEVICE = "_pci{number}"


@dataclass(frozen=True, slots=True)
class TopologyNeeds:
    groups: tuple[RequestGroup, ...] = ()
    same_subtree: tuple[tuple[str, ...], ...] = ()
    apart: tuple[str, ...] = ()
    """Suffixes of groups that different providers have to serve."""
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()

    @classmethod
    def of(cls, request: TopologyRequest, aliases: Mapping[str, PciAlias]) -> TopologyNeeds:
        cells = tuple(_cells(request))
        devices = tuple(_devices(request, aliases))
        required: set[str] = set()
        if request.thread_policy is ThreadPolicy.REQUIRE:
            required.add(HYPERTHREADING)
        if devices and request.pci_affinity is PciAffinity.SOCKET:
            required.add(SOCKET_AFFINITY)
        isolated = request.thread_policy is ThreadPolicy.ISOLATE
        return cls(
            groups=(*cells, *devices),
            same_subtree=tuple((cells[0].suffix, suffix) for suffix in _near(request, aliases) if cells),
            apart=tuple(group.suffix for group in cells) if len(cells) > 1 else (),
            root_required=frozenset(required),
            root_forbidden=frozenset({HYPERTHREADING} if isolated else ()),
        )


def _cells(request: TopologyRequest) -> Iterator[RequestGroup]:
    for number in range(len(request.cells)):
        amounts = {"PCPU": request.pcpus(number), pages.class_of(request.page_kib): request.pages(number)}
        wanted = {name: amount for name, amount in amounts.items() if amount}
        if wanted:
            yield RequestGroup(_CELL.format(number=number), wanted)


def _devices(request: TopologyRequest, aliases: Mapping[str, PciAlias]) -> Iterator[RequestGroup]:
    """Each of its own, since several may come from several."""
    for number, alias in enumerate(_each(request, aliases)):
        yield RequestGroup(
            _DEVICE.format(number=number), {alias.resource_class: 1}, required_traits=alias.traits
        )


def _near(request: TopologyRequest, aliases: Mapping[str, PciAlias]) -> Iterator[str]:
    """Suffixes of the devices that have to be near the guest's memory; its own word wins over the alias's."""
    for number, alias in enumerate(_each(request, aliases)):
        affinity = request.pci_affinity
        if affinity is PciAffinity.LEGACY:
            affinity = alias.affinity or affinity
        if affinity is PciAffinity.REQUIRED:
            yield _DEVICE.format(number=number)


def _each(request: TopologyRequest, aliases: Mapping[str, PciAlias]) -> Iterator[PciAlias]:
    for wanted in request.devices:
        if wanted.alias not in aliases:
            raise SchedulingError(f"PCI alias {wanted.alias} is not defined.")
        for _ in range(wanted.count):
            yield aliases[wanted.alias]
