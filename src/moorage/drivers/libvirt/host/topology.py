"""Where on the host a guest is: what its XML says of processors, memory and devices of the host."""

from __future__ import annotations

import msgspec


class PciAddress(msgspec.Struct, frozen=True, order=True):
    domain: int
    bus: int
    slot: int
    function: int

    def __str__(self) -> str:
        return f"{self.domain:04x}:{self.bus:02x}:{self.slot:02x}.{self.function:x}"

    @classmethod
    def parse(cls, text: str) -> PciAddress:
        """ValueError if it is none."""
        domain, bus, rest = text.split(":")
        slot, function = rest.split(".")
        return cls(int(domain, 16), int(bus, 16), int(slot, 16), int(function, 16))


class GuestCell(msgspec.Struct, frozen=True):
    """A NUMA cell of the guest (`<numa><cell>`), and the one of the host that its memory comes from."""

    id: int
    vcpus: tuple[int, ...]
    memory_mb: int
    host_cell: int


class GuestThreads(msgspec.Struct, frozen=True):
    """What a guest sees of its processors (`<topology>`): its threads share a core if the host's do."""

    sockets: int
    cores: int
    threads: int


class GuestTopology(msgspec.Struct, frozen=True):
    """All that is particular about where a guest is; a plain guest has the default of each."""

    vcpu_pins: dict[int, tuple[int, ...]] = {}
    """By vCPU, the host's processors that it runs on (`<vcpupin>`); one each if they are dedicated."""
    dedicated: tuple[int, ...] = ()
    """Those among them that no other guest may run on."""
    emulator_pin: tuple[int, ...] = ()
    """Where everything else of the guest runs (`<emulatorpin>`); empty for anywhere."""
    cells: tuple[GuestCell, ...] = ()
    """Empty if the guest is not to know of NUMA."""
    memory_cells: tuple[int, ...] = ()
    """Cells of the host that its memory has to come from (`<numatune>`, mode strict); empty for any."""
    page_kib: int = 0
    """The size of the huge pages that its memory is made of (`<memoryBacking>`); 0 for none."""
    threads: GuestThreads | None = None
    devices: tuple[PciAddress, ...] = ()
    """Devices of the host that it gets (`<hostdev>`)."""
