from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.drivers.contract import NoRoomError, child_uuid
from moorage.drivers.libvirt.host.machine import HostCell, HostCpu, parse_capabilities
from moorage.drivers.libvirt.host.pci_devices import OfferedDevice, PciDevice, PciType
from moorage.drivers.libvirt.host.pinning import Allocations, HostLayout, place
from moorage.drivers.libvirt.host.topology import GuestThreads, GuestTopology, PciAddress
from moorage.topology.parse import parse_topology
from tests.unit.drivers.libvirt.fake_hypervisor import sample

NODE = "00000000-0000-4000-8000-000000000001"
CELLS = parse_capabilities(sample("capabilities_two_cells")).cells
LAYOUT = HostLayout(
    "h1", NODE, CELLS, shared=frozenset({0, 4, 8, 12}), dedicated=frozenset(range(16)) - {0, 4, 8, 12}
)


def _cell(number: int) -> str:
    return child_uuid(NODE, f"h1_NUMA{number}")


def _place(
    vcpus: int,
    allocations: Allocations,
    others: list[GuestTopology] | None = None,
    layout: HostLayout = LAYOUT,
    ram: int = 2048,
    **specs: str,
) -> GuestTopology:
    extra = {f"hw:{name}": value for name, value in specs.items() if name != "alias"}
    if "alias" in specs:
        extra["pci_passthrough:alias"] = specs["alias"]
    request = parse_topology({"vcpus": vcpus, "ram": ram, "extra_specs": extra}, {})
    return place(request, layout, allocations, others or [])


def test_a_plain_guest_floats_over_the_shared_processors() -> None:
    guest = _place(2, {})
    assert guest.vcpu_pins == {0: (0, 4, 8, 12), 1: (0, 4, 8, 12)}
    assert guest.emulator_pin == (0, 4, 8, 12)
    assert (guest.cells, guest.memory_cells, guest.dedicated) == ((), (), ())


def test_a_plain_guest_of_a_plain_host_is_not_pinned_at_all() -> None:
    plain = HostLayout("h1", NODE, CELLS, shared=frozenset(), dedicated=frozenset())
    assert _place(2, {}, layout=plain) == GuestTopology()


def test_dedicated_processors_are_those_of_the_cell_that_was_allocated() -> None:
    guest = _place(4, {_cell(1): {"PCPU": 4}}, cpu_policy="dedicated")
    assert set(guest.dedicated) == {5, 13, 6, 14}, "whole cores"
    assert guest.vcpu_pins == {0: (5,), 1: (13,), 2: (6,), 3: (14,)}
    assert guest.threads == GuestThreads(sockets=1, cores=2, threads=2)
    assert guest.memory_cells == (1,)
    assert guest.emulator_pin == (0, 4, 8, 12)


def test_an_isolated_emulator_has_a_processor_of_its_own() -> None:
    guest = _place(2, {_cell(0): {"PCPU": 3}}, cpu_policy="dedicated", emulator_threads_policy="isolate")
    assert len(guest.dedicated) == 3
    assert guest.emulator_pin not in guest.vcpu_pins.values()
    assert set(guest.emulator_pin) < set(guest.dedicated)


def test_a_mixed_guest_has_both_kinds() -> None:
    guest = _place(3, {_cell(0): {"PCPU": 1}}, cpu_policy="mixed", cpu_dedicated_mask="2")
    assert len(guest.vcpu_pins[2]) == 1
    assert guest.vcpu_pins[0] == guest.vcpu_pins[1] == (0, 8), "shared ones of the same cell"


def test_the_cells_of_a_guest_go_to_different_cells_of_the_host() -> None:
    given = {_cell(0): {"PCPU": 1, "CUSTOM_HUGEPAGES_2048KB": 256}}
    given[_cell(1)] = {"PCPU": 3, "CUSTOM_HUGEPAGES_2048KB": 768}
    specs: dict[str, Any] = {
        "numa_nodes": "2",
        "numa_cpus.0": "0-2",
        "numa_cpus.1": "3",
        "numa_mem.0": "1536",
        "numa_mem.1": "512",
    }
    guest = _place(4, given, cpu_policy="dedicated", mem_page_size="2MB", **specs)
    assert [cell.host_cell for cell in guest.cells] == [1, 0]
    assert guest.page_kib == 2048
    assert guest.memory_cells == (0, 1)
    assert guest.vcpu_pins[3][0] in CELLS[0].cpu_ids


def test_siblings_are_required_where_they_are_asked_for() -> None:
    lonely = GuestTopology(vcpu_pins={0: (1,), 1: (2,), 2: (3,)}, dedicated=(1, 2, 3))
    given = {_cell(0): {"PCPU": 2}}
    assert set(_place(2, given, [lonely], cpu_policy="dedicated").dedicated) == {9, 10}
    with pytest.raises(NoRoomError):
        _place(2, given, [lonely], cpu_policy="dedicated", cpu_thread_policy="require")


def test_a_guest_gets_devices_that_no_other_has() -> None:
    physical = PciAddress.parse("0000:81:00.0")
    functions = [
        OfferedDevice(
            PciDevice(PciAddress(0, 0x81, 0x10, number), "8086", "1515", PciType.VIRTUAL, 1, physical),
            "CUSTOM_PCI_8086_1515",
            frozenset(),
        )
        for number in range(3)
    ]
    layout = HostLayout("h1", NODE, CELLS, frozenset(), frozenset(), functions)
    given = {child_uuid(NODE, "h1_0000:81:00.0"): {"CUSTOM_PCI_8086_1515": 2}}
    other = GuestTopology(devices=(PciAddress(0, 0x81, 0x10, 1),))
    guest = _place(1, given, [other], layout, alias="vf:2")
    assert [str(address) for address in guest.devices] == ["0000:81:10.0", "0000:81:10.2"]
    assert _place(1, given, [other], layout).devices == guest.devices, "asked for by its class"
    with pytest.raises(NoRoomError):
        _place(1, given, [other, guest], layout, alias="vf:2")
    with pytest.raises(NoRoomError):
        _place(1, {}, [], layout, alias="vf:1")


hosts = st.builds(
    lambda cells, cores, threads: tuple(
        HostCell(
            cell,
            2**22,
            tuple(
                HostCpu(
                    cell * cores + core + thread * cells * cores,
                    cell,
                    frozenset(cell * cores + core + other * cells * cores for other in range(threads)),
                )
                for thread in range(threads)
                for core in range(cores)
            ),
            {4: 2**18, 2048: 1024},
        )
        for cell in range(cells)
    ),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 2),
)
wishes = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 6), st.sampled_from(["prefer", "require", "isolate", ""])),
    max_size=8,
)


@given(hosts, wishes)
def test_no_two_guests_share_a_dedicated_processor_and_each_has_those_of_its_cell(
    cells: tuple[HostCell, ...], wanted: list[tuple[int, int, str]]
) -> None:
    everything = frozenset().union(*(cell.cpu_ids for cell in cells))
    layout = HostLayout("h1", NODE, cells, frozenset(), everything)
    guests: list[GuestTopology] = []
    for number, vcpus, policy in wanted:
        cell = cells[number % len(cells)]
        left = len(cell.cpu_ids.difference(*(guest.dedicated for guest in guests)))
        specs: dict[str, Any] = {
            "cpu_policy": "dedicated",
            **({"cpu_thread_policy": policy} if policy else {}),
        }
        try:
            guest = _place(vcpus, {_cell(cell.id): {"PCPU": vcpus}}, guests, layout, **specs)
        except NoRoomError:
            assert left < vcpus or policy in ("require", "isolate")
            continue
        assert len(guest.dedicated) == vcpus == len(guest.vcpu_pins)
        assert cell.cpu_ids.issuperset(guest.dedicated)
        assert sorted(cpu for cpus in guest.vcpu_pins.values() for cpu in cpus) == list(guest.dedicated)
        guests.append(guest)
    counts = Counter(cpu for guest in guests for cpu in guest.dedicated)
    assert not counts or max(counts.values()) == 1
