"""Where on the host guests are: chosen when a server comes, and kept in its record while it is here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from moorage.drivers.contract import ServerSpec
from moorage.drivers.libvirt.host.topology import GuestCell, GuestTopology
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory
from moorage.drivers.parts import ServerCell, ServerTopology

Choose = Callable[[ServerSpec, Iterable[GuestTopology]], GuestTopology]
"""A place for a server among those of all others."""


class GuestPlaces:
    def __init__(self, choose: Choose, guests: Callable[[], Mapping[str, GuestTopology]]) -> None:
        """`guests` tells where those are that are here already, by server."""
        self._choose = choose
        self._guests = guests
        self._lock = threading.Lock()

    @contextmanager
    def chosen(self, spec: ServerSpec) -> Iterator[GuestTopology]:
        """What the guest of a server gets; nobody else chooses until that is written into its record."""
        with self._lock:
            others = [place for uuid, place in self._guests().items() if uuid != spec.uuid]
            yield self._choose(spec, others)


def topologies(instances: Path, node_uuid: str) -> Mapping[str, GuestTopology]:
    """Of all servers of the node, also those that are about to come or go; hosts may share the directory."""
    found = {}
    for path in instances.iterdir():
        if not path.is_dir():  # somebody else's: Nova has files there
            continue
        record = ServerDirectory(instances, path.name, node_uuid).read()
        if record is not None:
            found[path.name] = record.topology
    return found


def told(place: GuestTopology) -> ServerTopology:
    """As the Compute API tells it."""
    return ServerTopology([_cell(place, cell) for cell in place.cells], place.page_kib or None)


def _cell(place: GuestTopology, cell: GuestCell) -> ServerCell:
    processors = {vcpu: place.vcpu_pins.get(vcpu, ()) for vcpu in cell.vcpus}
    pins = {vcpu: found[0] for vcpu, found in processors.items() if found and found[0] in place.dedicated}
    threads = place.threads.threads if place.threads else 1
    cores = [list(cell.vcpus[first : first + threads]) for first in range(0, len(cell.vcpus), threads)]
    return ServerCell(
        list(cell.vcpus), cell.memory_mb, cell.host_cell, pins, cores if pins and threads > 1 else []
    )
