"""The moves of a server, one after the other, with the reference Placement: see `test_targets.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from moorage.placement.client.http import HttpPlacement
from moorage.placement.client.transport import SessionTransport
from tests.functional.conductor.conftest import Yard
from tests.functional.conductor.harbour import Harbour
from tests.support.stage import reference_stage

LIMIT = 3
DECOYS = 6
HOSTS = ("fake-1", "fake-2", "fake-3", "fake-4")


class ReferenceYard(Yard):
    """On the reference Placement, whose tables we don't look into."""

    def holders(self) -> set[str]:
        known = [server["id"] for server in self.get("/v2.1/servers")["servers"]]
        known += [migration["uuid"] for migration in self.get("/v2.1/os-migrations")["migrations"]]
        return {uuid for uuid in known if self.client.allocations(uuid)[0]}

    def providers(self) -> int:
        listed = self.get("/v2.1/os-hypervisors")["hypervisors"]
        return sum(self.client.tree_has(one["id"], ["COMPUTE_NODE"]) for one in listed)


@pytest.fixture
def place(sqlite_url: str, tmp_path: Path) -> Iterator[Harbour]:
    with reference_stage(tmp_path) as stage, requests.Session() as session:
        session.trust_env = False
        session.headers["X-Auth-Token"] = "admin"
        client = HttpPlacement(SessionTransport(session, f"http://127.0.0.1:{stage.fresh()}"))
        options: dict[str, object] = {
            "scheduler.candidates": LIMIT,
            "fake.vcpus": 4,
            "agent.inventory_interval": 60.0,
        }
        yard = ReferenceYard(sqlite_url, tmp_path / "agents", 4, client, **options)
        yield Harbour(yard, tmp_path)
        yard.stop()


def test_every_use_case_one_after_the_other(place: Harbour) -> None:
    place.crowd(DECOYS)
    uuid = place.running(host="fake-3")
    assert place.trees_asked_for() == [place.node_of("fake-3")]
    place.only_on(uuid, "fake-3")

    place.act(uuid, {"migrate": {"host": "fake-4"}})
    place.settled(uuid, "VERIFY_RESIZE")
    assert place.trees_asked_for() == [place.node_of("fake-4")]
    place.on_both(uuid, "fake-3", "fake-4")
    place.act(uuid, {"revertResize": None})
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, "fake-3")

    place.act(uuid, {"resize": {"flavorRef": "3"}})
    target = place.settled(uuid, "VERIFY_RESIZE")["OS-EXT-SRV-ATTR:host"]
    place.on_both(uuid, "fake-3", target)
    place.act(uuid, {"confirmResize": None}, status=204)
    place.settled(uuid, "ACTIVE")
    assert place.only_on(uuid, target)
    assert place.held(uuid)[target]["VCPU"] == 2
    assert place.trees_asked_for() == []

    before = place.held(uuid)
    place.act(uuid, {"rebuild": {"imageRef": place.add_image({"trait:HW_CPU_X86_VMX": "required"})}})
    place.settled(uuid, "ACTIVE")
    place.act(uuid, {"rebuild": {"imageRef": place.add_image({"trait:HW_CPU_X86_AVX512F": "required"})}})
    place.settled(uuid, "ACTIVE")
    assert "HW_CPU_X86_AVX512F" in place.last_error(uuid)
    assert place.held(uuid) == before

    for host in (next(host for host in HOSTS if host != target), None):
        place.act(uuid, {"os-migrateLive": {"host": host, "block_migration": "auto"}})
        place.settled(uuid, "ACTIVE")
        place.only_on(uuid, place.host_of(uuid))

    source = place.host_of(uuid)
    target = next(host for host in HOSTS if host != source)
    place.die(source)
    place.cloud.asked.queries.clear()
    place.act(uuid, {"evacuate": {"host": target}}, status=200)
    place.settled(uuid, "SHUTOFF")
    assert place.trees_asked_for() == [place.node_of(target)]
    place.only_on(uuid, target)

    place.cloud.delete(uuid)
    place.cloud.await_gone([uuid])
    assert place.cloud.holders() == set()
