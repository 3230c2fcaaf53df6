"""Trees of nodes, through every client and with every service: told, reshaped, and taken away again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from moorage.agent.journal import Journal
from moorage.agent.tracker import Tracker
from moorage.drivers.contract import ChildProvider, Holding, Inventory, Node, child_uuid
from moorage.placement.client.contract import (
    ConsumerClaim,
    PlacementClient,
    PlacementRefusedError,
    PlacementUnavailableError,
    ReportedProvider,
)
from moorage.scheduler.request import from_flavor
from tests.functional.placement.fleet import node_uuid, server_uuid
from tests.support.processes import wait_until

ROOT = node_uuid(1)
PLAIN = Node(
    ROOT,
    "h1",
    "QEMU",
    {"VCPU": Inventory(4), "PCPU": Inventory(8, max_unit=8), "MEMORY_MB": Inventory(4096)},
    children=(),
)


def _cell(number: int, pcpus: int = 4) -> ChildProvider:
    inventories = {"PCPU": Inventory(pcpus, max_unit=pcpus), "CUSTOM_HUGEPAGES_2048KB": Inventory(512)}
    return ChildProvider(f"h1_NUMA{number}", inventories, ["HW_NUMA_ROOT"])


IN_CELLS = msgspec.structs.replace(
    PLAIN,
    inventories={name: PLAIN.inventories[name] for name in ("VCPU", "MEMORY_MB")},
    children=(_cell(0), _cell(1)),
)
CELL_0, CELL_1 = child_uuid(ROOT, "h1_NUMA0"), child_uuid(ROOT, "h1_NUMA1")


def _claim(number: int, pcpus: int) -> ConsumerClaim:
    held = {ROOT: {"PCPU": pcpus, "MEMORY_MB": 256}}
    return ConsumerClaim(server_uuid(number), held, "project", "user")


@pytest.fixture
def tracker(client: PlacementClient, tmp_path: Path) -> Tracker:
    return Tracker(client, Journal(tmp_path / "journal.sqlite"))


def _names(client: PlacementClient) -> set[str]:
    return {provider.name for provider in client.tree(ROOT)}


def _held(client: PlacementClient, number: int) -> dict[str, dict[str, int]]:
    return client.allocations(server_uuid(number))[0]


def test_a_tree_is_told_and_found_again(client: PlacementClient, tracker: Tracker) -> None:
    assert client.tree(ROOT) == []
    below = ChildProvider("h1_0000:81:00.0", {"CUSTOM_PCI_8086_1515": Inventory(4)}, parent="h1_NUMA1")
    assert tracker.report([msgspec.structs.replace(IN_CELLS, children=(_cell(0), _cell(1), below))])
    found = {provider.name: provider for provider in client.tree(ROOT)}
    assert {name: one.parent_provider_uuid for name, one in found.items()} == {
        "h1": None,
        "h1_NUMA0": ROOT,
        "h1_NUMA1": ROOT,
        "h1_0000:81:00.0": CELL_1,
    }
    assert found["h1_NUMA0"].inventories["PCPU"].total == 4
    query = [("limit", "9"), ("resources1", "PCPU:2"), ("required1", "HW_NUMA_ROOT")]
    assert len(client.candidates(query).allocation_requests) == 2


def test_allocations_follow_an_inventory_into_the_tree_and_back(
    client: PlacementClient, tracker: Tracker
) -> None:
    tracker.report([PLAIN])
    assert client.claim([_claim(1, 3), _claim(2, 3), _claim(3, 1)]) == [None] * 3
    said = Holding(server_uuid(1), CELL_1, {"PCPU": 3})
    assert tracker.report([msgspec.structs.replace(IN_CELLS, holdings=(said,))])
    assert _held(client, 1) == {ROOT: {"MEMORY_MB": 256}, CELL_1: {"PCPU": 3}}, "the driver's word"
    assert _held(client, 2) == {ROOT: {"MEMORY_MB": 256}, CELL_0: {"PCPU": 3}}, "where there is room"
    assert "PCPU" not in next(one for one in client.tree(ROOT) if one.uuid == ROOT).inventories
    assert tracker.report([PLAIN])
    assert [_held(client, number)[ROOT]["PCPU"] for number in (1, 2, 3)] == [3, 3, 1]
    assert _names(client) == {"h1"}


def test_a_child_that_vanished_stays_as_long_as_it_is_used(client: PlacementClient, tracker: Tracker) -> None:
    device = ChildProvider("h1_0000:81:00.0", {"CUSTOM_PCI_8086_1515": Inventory(4)})
    uuid = child_uuid(ROOT, device.name)
    tracker.report([msgspec.structs.replace(PLAIN, children=(device,))])
    held = ConsumerClaim(server_uuid(1), {uuid: {"CUSTOM_PCI_8086_1515": 1}}, "project", "user")
    assert client.claim([held]) == [None]
    assert tracker.report([PLAIN])
    assert _held(client, 1) == {uuid: {"CUSTOM_PCI_8086_1515": 1}}
    query = [("limit", "9"), ("resources", "CUSTOM_PCI_8086_1515:1")]
    assert not client.candidates(query).allocation_requests, "nobody gets more of it"
    client.release([server_uuid(1)])
    assert tracker.report([PLAIN])
    assert _names(client) == {"h1"}


def test_children_of_others_stay(client: PlacementClient, tracker: Tracker) -> None:
    tracker.report([IN_CELLS])
    client.report([ReportedProvider(node_uuid(9), "h1:agent", parent_provider_uuid=ROOT)])
    tracker.report([PLAIN])
    assert _names(client) == {"h1", "h1:agent"}


def test_traits_set_by_hand_stay_on_children(client: PlacementClient, tracker: Tracker) -> None:
    tracker.report([IN_CELLS])
    client.set_trait([CELL_0], "HW_CPU_HYPERTHREADING", present=True)
    bare = tuple(msgspec.structs.replace(child, traits=[]) for child in IN_CELLS.children or ())
    tracker.report([msgspec.structs.replace(IN_CELLS, children=bare)])
    query = [("limit", "9"), ("resources", "PCPU:1")]
    assert client.candidates([*query, ("required", "HW_CPU_HYPERTHREADING")]).allocation_requests
    assert not client.candidates([*query, ("required", "HW_NUMA_ROOT")]).allocation_requests


def test_a_reshape_that_saw_something_older_is_refused(client: PlacementClient, tracker: Tracker) -> None:
    tracker.report([PLAIN])
    client.claim([_claim(1, 2)])
    providers, consumers = client.tree(ROOT), client.consumers([ROOT])
    client.claim([msgspec.structs.replace(_claim(1, 3), consumer_generation=1)])
    with pytest.raises(PlacementRefusedError) as caught:
        client.reshape(providers, consumers)
    assert caught.value.status == 409
    assert _held(client, 1)[ROOT]["PCPU"] == 3


def test_the_cells_of_a_guest_are_served_by_different_cells_of_a_host(
    client: PlacementClient, tracker: Tracker
) -> None:
    tracker.report([IN_CELLS])
    flavor = {"vcpus": 4, "ram": 512, "disk": 0}
    specs = {"hw:numa_nodes": "2", "hw:cpu_policy": "dedicated", "hw:mem_page_size": "2MB"}
    request = from_flavor(server_uuid(1), {**flavor, "extra_specs": specs})
    found = client.candidates(request.queries(9)[0])
    assert found.allocation_requests
    half = {"resources": {"PCPU": 2, "CUSTOM_HUGEPAGES_2048KB": 128}}
    for way in found.allocation_requests:
        assert way.allocations == {ROOT: {"resources": {"MEMORY_MB": 1}}, CELL_0: half, CELL_1: half}


class _DyingPlacement:
    """Passes everything on, until the agent dies right after a reshape."""

    def __init__(self, inner: PlacementClient) -> None:
        self._inner = inner
        self.dead = False

    def reshape(self, *arguments: Any) -> None:
        self._inner.reshape(*arguments)
        self.dead = True

    def report(self, providers: Sequence[ReportedProvider]) -> None:
        if self.dead:
            raise PlacementUnavailableError("dead")
        self._inner.report(providers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_an_agent_that_dies_in_a_reshape_goes_on_after_it(client: PlacementClient, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    tracker = Tracker(client, journal)
    tracker.report([PLAIN])
    client.claim([_claim(1, 3)])
    dying = cast(PlacementClient, _DyingPlacement(client))
    assert not Tracker(dying, journal).report([IN_CELLS])
    held = _held(client, 1)
    assert held[CELL_0] == {"PCPU": 3}
    restarted = Tracker(client, Journal(tmp_path / "journal.sqlite"))
    assert restarted.report([IN_CELLS])
    assert _held(client, 1) == held
    assert _names(client) == {"h1", "h1_NUMA0", "h1_NUMA1"}
    assert len(client.candidates([("limit", "9"), ("resources", "PCPU:1")]).allocation_requests) == 2


class _CountingPlacement:
    """Says yes to everything, and remembers what it was asked."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append(name)


def test_a_tree_that_stays_as_it_was_is_not_asked_for(
    session_to_moorage: PlacementClient, tmp_path: Path
) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    assert Tracker(session_to_moorage, journal).report([IN_CELLS])
    counting = _CountingPlacement()
    tracker = Tracker(cast(PlacementClient, counting), journal)
    assert tracker.report([IN_CELLS])
    tracker.forget()
    assert tracker.report([IN_CELLS])
    assert counting.calls == ["report", "report"]


@pytest.mark.parametrize("name", ["local_on_sqlite", "local_on_postgresql"])
def test_claims_that_race_with_reshapes_are_neither_lost_nor_doubled(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    client: PlacementClient = request.getfixturevalue(name)
    tracker = Tracker(client, Journal(tmp_path / "journal.sqlite"))
    tracker.report([PLAIN])

    def boot(number: int) -> bool:
        """As a conductor does: ask, claim, and ask again if somebody was faster."""
        for _ in range(50):
            for way in client.candidates([("limit", "9"), ("resources", "PCPU:1")]).allocation_requests:
                held = {uuid: entry["resources"] for uuid, entry in way.allocations.items()}
                if client.claim([ConsumerClaim(server_uuid(number), held, "project", "user")]) == [None]:
                    return True
        return False

    with ThreadPoolExecutor(2) as pool:
        booting = [pool.submit(boot, number) for number in range(8)]
        for shape in [IN_CELLS, PLAIN] * 3:
            wait_until(partial(tracker.report, [shape]), "the tree to be told", 30)
    assert [future.result() for future in booting] == [True] * 8
    assert tracker.report([IN_CELLS])
    held = [_held(client, number) for number in range(8)]
    assert Counter(uuid for each in held for uuid in each) == {CELL_0: 4, CELL_1: 4}
    assert all(amounts == {"PCPU": 1} for each in held for amounts in each.values())
    client.release([server_uuid(number) for number in range(8)])
    assert tracker.report([PLAIN])
    assert _names(client) == {"h1"}
