"""The places of guests, and what the Compute API tells of them."""

from __future__ import annotations

from pathlib import Path

from moorage.drivers.libvirt import guest_places
from moorage.drivers.libvirt.host.topology import GuestCell, GuestThreads, GuestTopology
from moorage.drivers.parts import ServerCell, ServerTopology


def test_a_plain_guest_is_nowhere_in_particular() -> None:
    assert guest_places.told(GuestTopology()) == ServerTopology([], None)


def test_cells_tell_their_dedicated_processors_and_the_threads_of_a_core() -> None:
    place = GuestTopology(
        vcpu_pins={0: (10,), 1: (11,), 2: (4, 5), 3: (4, 5)},
        dedicated=(10, 11),
        cells=(GuestCell(0, (0, 1), 256, 1), GuestCell(1, (2, 3), 512, 0)),
        page_kib=2048,
        threads=GuestThreads(1, 2, 2),
    )
    assert guest_places.told(place) == ServerTopology(
        [ServerCell([0, 1], 256, 1, {0: 10, 1: 11}, [[0, 1]]), ServerCell([2, 3], 512, 0)], 2048
    )


def test_files_of_somebody_else_beside_the_servers_directories_are_nobodys_place(tmp_path: Path) -> None:
    """As Nova has some."""
    (tmp_path / "compute_nodes").write_text("{}")
    (tmp_path / "_base").mkdir()
    assert guest_places.topologies(tmp_path, "node-1") == {}
