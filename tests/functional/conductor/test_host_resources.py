"""What of a host's cells flavors ask for: allocated there, told to the driver, and moved with the server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.drivers.contract import ChildProvider, Inventory, Node, Parcel, ServerSpec
from moorage.drivers.fake import plugin
from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from tests.functional.conductor.conftest import Make
from tests.functional.conductor.harbour import Harbour

PAGES = "CUSTOM_HUGEPAGES_2048KB"
VF = "CUSTOM_PCI_8086_1515"
ALIAS = '{"name": "vf", "vendor_id": "8086", "product_id": "1515", "numa_policy": "required"}'


class CellDriver(FakeDriver):
    """A host of two cells, the second of them with a network card."""

    specs: dict[str, ServerSpec] = {}

    def __init__(self, host: str, settings: FakeSettings, directory: Path, *more: Any) -> None:
        super().__init__(host, settings, directory, *more)
        cell = {"PCPU": Inventory(4, max_unit=4), PAGES: Inventory(1024)}
        children = (
            ChildProvider(f"{host}_NUMA0", cell, ["HW_NUMA_ROOT"]),
            ChildProvider(f"{host}_NUMA1", cell, ["HW_NUMA_ROOT"]),
            ChildProvider(f"{host}_0000:81:00.0", {VF: Inventory(2)}, parent=f"{host}_NUMA1"),
        )
        self._nodes = [msgspec.structs.replace(node, children=children) for node in self._nodes]

    def nodes(self) -> Sequence[Node]:
        return self._nodes

    def spawn(self, spec: ServerSpec) -> int:
        self.specs[spec.uuid] = spec
        return super().spawn(spec)

    def take_over(self, spec: ServerSpec, parcel: Parcel) -> int:
        self.specs[spec.uuid] = spec
        return super().take_over(spec, parcel)


@pytest.fixture
def specs(monkeypatch: pytest.MonkeyPatch) -> dict[str, ServerSpec]:
    """What drivers were told, by server."""
    monkeypatch.setattr(CellDriver, "specs", {})
    monkeypatch.setattr(plugin, "FakeDriver", CellDriver)
    return CellDriver.specs


def _flavor(place: Harbour, name: str, specs: dict[str, str], vcpus: int = 2) -> None:
    flavor = {"name": name, "id": name, "ram": 1024, "vcpus": vcpus, "disk": 1}
    assert place.cloud.api.simulate_post("/v2.1/flavors", json={"flavor": flavor}).status_code == 200
    reply = place.cloud.api.simulate_post(f"/v2.1/flavors/{name}/os-extra_specs", json={"extra_specs": specs})
    assert reply.status_code == 200, reply.text


def _held(place: Harbour, consumer: str, host: str) -> dict[str, dict[str, int]]:
    """What somebody has of a host's tree, by what follows the host's name; nobody has anything elsewhere."""
    names = {one.uuid: one.name for one in place.cloud.client.tree(place.node_of(host))}
    found, _ = place.cloud.client.allocations(consumer)
    return {names[uuid].removeprefix(host): amounts for uuid, amounts in found.items()}


def test_what_a_flavor_asks_of_cells_is_allocated_there_and_the_driver_is_told(
    harbour: Make, specs: dict[str, ServerSpec]
) -> None:
    place = harbour(hosts=1, **{"pci.alias": [ALIAS]})
    dedicated = {"hw:cpu_policy": "dedicated", "hw:mem_page_size": "2MB"}
    _flavor(place, "pinned", {**dedicated, "pci_passthrough:alias": "vf:1"}, vcpus=3)
    _flavor(place, "wide", {**dedicated, "hw:numa_nodes": "2"})
    pinned, wide = place.running(flavorRef="pinned"), place.running(flavorRef="wide")
    host = place.host_of(pinned)
    held, _ = place.cloud.client.allocations(pinned)
    assert specs[pinned].allocations == held
    assert _held(place, pinned, host) == {
        "": {"DISK_GB": 1},
        "_NUMA1": {"PCPU": 3, PAGES: 512},
        "_0000:81:00.0": {VF: 1},
    }, "beside the device"
    half = {"PCPU": 1, PAGES: 256}
    assert _held(place, wide, host) == {"": {"DISK_GB": 1}, "_NUMA0": half, "_NUMA1": half}
    place.cloud.await_status(place.cloud.boot(flavorRef="pinned"), "ERROR")
    assert place.running()
    plain = place.running()
    assert specs[plain].allocations == {}, "a plain server has all of the node itself"


def test_a_move_takes_what_a_server_has_of_cells_along(harbour: Make, specs: dict[str, ServerSpec]) -> None:
    place = harbour()
    _flavor(place, "pinned", {"hw:cpu_policy": "dedicated"})
    _flavor(place, "paged", {"hw:mem_page_size": "large", "hw:numa_nodes": "2"})
    uuid = place.running(flavorRef="pinned")
    source = place.host_of(uuid)
    before = _held(place, uuid, source)
    place.act(uuid, {"resize": {"flavorRef": "paged"}})
    target = place.settled(uuid, "VERIFY_RESIZE")["OS-EXT-SRV-ATTR:host"]
    held, _ = place.cloud.client.allocations(uuid)
    assert specs[uuid].allocations == held
    assert _held(place, uuid, target) == {
        "": {"VCPU": 2, "DISK_GB": 1},
        "_NUMA0": {PAGES: 256},
        "_NUMA1": {PAGES: 256},
    }
    assert _held(place, place.migrations(uuid)[0]["uuid"], source) == before
    place.act(uuid, {"revertResize": None})
    place.settled(uuid, "ACTIVE")
    assert _held(place, uuid, source) == before
    place.cloud.delete(uuid)
    place.nothing_left(uuid)


NONSENSE = {
    "hw:numa_nodes": ("3", "hw:numa_nodes"),
    "hw:cpu_thread_policy": ("require", "hw:cpu_thread_policy"),
    "hw:mem_page_size": ("3MB", "hw:mem_page_size"),
    "pci_passthrough:alias": ("gpu:1", "PCI alias gpu is not defined"),
}


def test_what_makes_no_sense_is_refused_at_boot_resize_and_rebuild(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running()
    for number, (key, (value, told)) in enumerate(NONSENSE.items()):
        _flavor(place, f"odd-{number}", {key: value})
        body: dict[str, Any] = {"name": "s", "flavorRef": f"odd-{number}", "imageRef": place.cloud.image()}
        reply = place.cloud.api.simulate_post("/v2.1/servers", json={"server": {**body, "networks": "auto"}})
        assert reply.status_code == 400, reply.text
        assert told in reply.text
        assert told in place.refused(uuid, {"resize": {"flavorRef": f"odd-{number}"}}, 400)
    image = place.add_image({"hw_numa_nodes": "1"})
    assert "NUMA topology" in place.refused(uuid, {"rebuild": {"imageRef": image}}, 400)
