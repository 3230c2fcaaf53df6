"""The request: what one server asks of where on a host it is put."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class CpuPolicy(StrEnum):
    SHARED = "shared"
    DEDICATED = "dedicated"
    MIXED = "mixed"


class ThreadPolicy(StrEnum):
    PREFER = "prefer"
    """Threads of one core, if there are such."""
    ISOLATE = "isolate"
    """Nobody else on the core: on hosts without hyperthreading."""
    REQUIRE = "require"
    """Threads of one core: on hosts with hyperthreading."""


class PciAffinity(StrEnum):
    """Whether devices have to be near the guest's memory."""

    REQUIRED = "required"
    PREFERRED = "preferred"
    LEGACY = "legacy"
    SOCKET = "socket"


class CellRequest(msgspec.Struct, frozen=True):
    """A NUMA cell of the guest, which one cell of the host has to hold."""

    vcpus: tuple[int, ...]
    memory_mb: int


class DeviceRequest(msgspec.Struct, frozen=True):
    """So many devices that an alias stands for."""

    alias: str
    count: int


class TopologyRequest(msgspec.Struct, frozen=True):
    """A plain server has the default of each."""

    vcpus: int = 0
    cpu_policy: CpuPolicy = CpuPolicy.SHARED
    dedicated: frozenset[int] = frozenset()
    """The vCPUs that have a processor of their own."""
    thread_policy: ThreadPolicy | None = None
    isolated_emulator: bool = False
    """Whatever else of the guest runs has a processor of its own, too."""
    page_kib: int = 0
    """Of huge pages; 0 for ordinary ones."""
    cells: tuple[CellRequest, ...] = ()
    """Empty if the guest may be anywhere on the host."""
    devices: tuple[DeviceRequest, ...] = ()
    pci_affinity: PciAffinity = PciAffinity.LEGACY

    def pcpus(self, number: int) -> int:
        """How many processors of its own a cell needs; the first one has the emulator's, too."""
        own = len(self.dedicated.intersection(self.cells[number].vcpus))
        return own + int(self.isolated_emulator and number == 0)

    def pages(self, number: int) -> int:
        """How many huge pages a cell needs."""
        return self.cells[number].memory_mb * 1024 // self.page_kib if self.page_kib else 0
