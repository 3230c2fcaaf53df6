"""Servers that have to go to one certain host get there, however many others are in front of it.

Each use case is run with our Placement and with the reference, behind far more hosts that are full or
disabled than a question to Placement is answered with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import sqlalchemy as sa

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.tables.compute import nodes, services
from moorage.placement.client.contract import ConsumerClaim, PlacementClient, ReportedProvider
from moorage.placement.client.http import HttpPlacement
from moorage.placement.client.transport import SessionTransport
from moorage.scheduler.request import MOST_TREES
from tests.functional.conductor.conftest import Yard
from tests.functional.conductor.harbour import Harbour
from tests.support.stage import Stage, reference_stage

LIMIT = 5
DECOYS = 40
HUGE = {"VCPU": {"total": 5000}, "MEMORY_MB": {"total": 2**24}, "DISK_GB": {"total": 10**6}}
OPTIONS: dict[str, object] = {
    "scheduler.candidates": LIMIT,
    "fake.vcpus": 4,
    "fake.cpu_allocation_ratio": 1.0,
}


class ReferenceYard(Yard):
    """On the reference Placement, whose tables we don't look into."""

    def holders(self) -> set[str]:
        known = [server["id"] for server in self.get("/v2.1/servers")["servers"]]
        known += [migration["uuid"] for migration in self.get("/v2.1/os-migrations")["migrations"]]
        return {uuid for uuid in known if self.client.allocations(uuid)[0]}

    def providers(self) -> int:
        listed = self.get("/v2.1/os-hypervisors")["hypervisors"]
        return sum(self.client.tree_has(one["id"], ["COMPUTE_NODE"]) for one in listed)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with reference_stage(tmp_path_factory.mktemp("reference")) as stage:
        yield stage


@pytest.fixture(params=["ours", "reference"])
def crowded(
    request: pytest.FixtureRequest, sqlite_url: str, tmp_path: Path
) -> Iterator[Callable[..., Harbour]]:
    """Four hosts, of which nobody would be found among the first that Placement names."""
    made: list[Yard] = []

    def make(hosts: int = 4, **options: object) -> Harbour:
        settings = {**OPTIONS, **options}
        if request.param == "ours":
            made.append(Yard(sqlite_url, tmp_path / "agents", hosts, **settings))
        else:
            stage: Stage = request.getfixturevalue("reference")
            session = requests.Session()
            session.trust_env = False
            session.headers["X-Auth-Token"] = "admin"
            client = HttpPlacement(SessionTransport(session, f"http://127.0.0.1:{stage.fresh()}"))
            made.append(ReferenceYard(sqlite_url, tmp_path / "agents", hosts, client, **settings))
        return Harbour(made[-1], tmp_path)

    yield make
    for one in made:
        one.stop()


def crowd(place: Harbour) -> None:
    """Hosts that Placement offers first: larger than all others, but full, or disabled."""
    full = [ReportedProvider(uuids.generate(), f"full-{n}", HUGE) for n in range(DECOYS)]
    said = [
        ReportedProvider(uuids.generate(), f"said-{n}", HUGE, traits=["COMPUTE_STATUS_DISABLED"])
        for n in range(DECOYS)
    ]
    lagging = [ReportedProvider(uuids.generate(), f"lagging-{n}", HUGE) for n in range(DECOYS)]
    client: PlacementClient = place.cloud.client
    client.report([*full, *said, *lagging])
    claims = [ConsumerClaim(uuids.generate(), {one.uuid: {"VCPU": 5000}}, "p", "u") for one in full]
    assert client.claim(claims) == [None] * DECOYS
    place.strangers = {claim.consumer_uuid for claim in claims}
    with place.cloud.placement.database.write() as connection:
        for one in [*full, *said, *lagging]:
            service = {"uuid": uuids.generate(), "host": one.name, "binary": "nova-compute", "version": 2}
            disabled = not one.name.startswith("full")
            connection.execute(
                sa.insert(services).values(**service, facts={}, seen_at=utcnow(), disabled=disabled)
            )
            node = {"uuid": one.uuid, "name": one.name, "host": one.name, "facts": {}}
            connection.execute(sa.insert(nodes).values(**node, hypervisor_type="fake"))
    place.cloud.asked.queries.clear()


def targeted(place: Harbour) -> list[str]:
    """The trees that were asked for since the last look; every question was bounded."""
    asked = [dict(query) for query in place.cloud.asked.queries]
    assert asked, "nobody was asked"
    assert all("limit" in query for query in asked)
    place.cloud.asked.queries.clear()
    return [query["in_tree"] for query in asked if "in_tree" in query]


def node_of(place: Harbour, host: str) -> str:
    listed = place.cloud.get("/v2.1/os-hypervisors")["hypervisors"]
    return str(next(one["id"] for one in listed if one["hypervisor_hostname"] == host))


@pytest.mark.parametrize(
    "where",
    [
        {"availability_zone": "nova:fake-3"},
        {"availability_zone": "nova:fake-3:fake-3"},
        {"availability_zone": "nova::fake-3"},
        {"host": "fake-3"},
        {"hypervisor_hostname": "fake-3"},
        {"host": "fake-3", "hypervisor_hostname": "fake-3"},
    ],
)
def test_a_server_is_created_on_the_host_asked_for(
    crowded: Callable[..., Harbour], where: dict[str, Any]
) -> None:
    place = crowded(hosts=3)
    crowd(place)
    uuid = place.running(**where)
    assert targeted(place) == [node_of(place, "fake-3")]
    place.only_on(uuid, "fake-3")


def test_a_server_is_migrated_to_the_host_asked_for(crowded: Callable[..., Harbour]) -> None:
    place = crowded()
    uuid = place.running(host="fake-1")
    crowd(place)
    place.act(uuid, {"migrate": {"host": "fake-4"}})
    place.settled(uuid, "VERIFY_RESIZE")
    assert targeted(place) == [node_of(place, "fake-4")]
    place.on_both(uuid, "fake-1", "fake-4")
    place.act(uuid, {"revertResize": None})
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, "fake-1")
    place.act(uuid, {"migrate": {"host": "fake-4"}})
    place.settled(uuid, "VERIFY_RESIZE")
    place.act(uuid, {"confirmResize": None}, status=204)
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, "fake-4")


def test_a_server_is_migrated_live_to_the_host_asked_for(crowded: Callable[..., Harbour]) -> None:
    place = crowded()
    uuid = place.running(host="fake-1")
    crowd(place)
    place.act(uuid, {"os-migrateLive": {"host": "fake-4", "block_migration": "auto"}})
    place.settled(uuid, "ACTIVE")
    assert targeted(place) == [node_of(place, "fake-4")]
    place.only_on(uuid, "fake-4")


def test_a_server_is_evacuated_to_the_host_asked_for(crowded: Callable[..., Harbour]) -> None:
    place = crowded()
    uuid = place.running(host="fake-1")
    crowd(place)
    place.die("fake-1")
    place.act(uuid, {"evacuate": {"host": "fake-4"}}, status=200)
    place.settled(uuid, "SHUTOFF")
    assert targeted(place) == [node_of(place, "fake-4")]
    place.only_on(uuid, "fake-4")


@pytest.mark.parametrize(
    ("body", "status", "settled"),
    [
        ({"resize": {"flavorRef": "2"}}, 202, "VERIFY_RESIZE"),
        ({"migrate": None}, 202, "VERIFY_RESIZE"),
        ({"os-migrateLive": {"host": None, "block_migration": "auto"}}, 202, "ACTIVE"),
        ({"evacuate": {}}, 200, "SHUTOFF"),
    ],
)
def test_a_host_is_found_behind_all_that_will_not_do(
    crowded: Callable[..., Harbour], body: dict[str, Any], status: int, settled: str
) -> None:
    place = crowded(hosts=2)
    uuid = place.running(host="fake-1")
    crowd(place)
    if "evacuate" in body:
        place.die("fake-1")
    place.act(uuid, body, status=status)
    assert place.settled(uuid, settled)["OS-EXT-SRV-ATTR:host"] == "fake-2"
    assert targeted(place) == []


def test_a_new_image_is_checked_against_the_one_host(crowded: Callable[..., Harbour]) -> None:
    place = crowded(hosts=2)
    uuid = place.running(host="fake-1")
    crowd(place)
    before = place.held(uuid)
    place.act(uuid, {"rebuild": {"imageRef": place.add_image({"trait:HW_CPU_X86_VMX": "required"})}})
    place.settled(uuid, "ACTIVE")
    assert place.held(uuid) == before
    place.act(uuid, {"rebuild": {"imageRef": place.add_image({"trait:HW_CPU_X86_AVX512F": "required"})}})
    place.settled(uuid, "ACTIVE")
    assert "HW_CPU_X86_AVX512F" in place.last_error(uuid)
    assert place.held(uuid) == before


def test_a_target_that_is_full_down_or_disabled_is_told_with_the_reason(
    crowded: Callable[..., Harbour],
) -> None:
    place = crowded(hosts=4)
    uuid = place.running(host="fake-1")
    place.running_many(4, host="fake-2")
    place.set_service("fake-3", status="disabled")
    place.die("fake-4")
    for host, words in (("fake-2", "vcpu: needs 1, free 0 of 4"), ("fake-3", "disabled"), ("fake-4", "down")):
        place.act(uuid, {"migrate": {"host": host}})
        place.settled(uuid, "ACTIVE")
        assert place.migrations(uuid)[0]["status"] == "error"
        error = place.last_error(uuid)
        assert "No valid host was found" in error
        if place.cloud.client.why([("resources", "VCPU:1")]) is not None:
            assert words in error.lower()
        assert place.traces(uuid)[-1]["trace"]["chosen"] is None
    assert set(place.held(uuid)) == {"fake-1"}


def test_a_host_of_many_nodes_is_asked_for_a_few_of_them(crowded: Callable[..., Harbour]) -> None:
    nodes_of_host = MOST_TREES + 8
    place = crowded(hosts=2, **{"fake.nodes": nodes_of_host, "fake.resource_class": "CUSTOM_METAL"})
    place.make_flavor("metal", "CUSTOM_METAL")
    first = place.running(flavorRef="metal", host="fake-2")
    trees = targeted(place)
    assert len(trees) == len(set(trees)) == MOST_TREES
    second = place.running(flavorRef="metal", host="fake-2")
    assert place.host_of(first) == place.host_of(second) == "fake-2"
    assert (
        place.cloud.server(first)["OS-EXT-SRV-ATTR:hypervisor_hostname"]
        != (place.cloud.server(second)["OS-EXT-SRV-ATTR:hypervisor_hostname"])
    )
