"""Servers that have to go to one certain host get there, however many others are in front of it.

Each use case is run behind far more hosts that are full or disabled than a question to Placement is answered
with: on our Placement with either database, and on the reference one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from moorage.placement.client.contract import PlacementClient
from moorage.placement.client.http import HttpPlacement
from moorage.placement.client.transport import SessionTransport
from moorage.scheduler import own_aggregate
from tests.functional.conductor.conftest import Make, Yard
from tests.functional.conductor.harbour import Harbour
from tests.support.stage import Stage, reference_stage

LIMIT = 3
OPTIONS: dict[str, object] = {
    "scheduler.candidates": LIMIT,
    "fake.vcpus": 4,
    "fake.cpu_allocation_ratio": 1.0,
}
OURS = ("sqlite", "postgresql")
REFERENCE = "reference"


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


@pytest.fixture
def to_reference(reference: Stage) -> Iterator[PlacementClient]:
    with requests.Session() as session:
        session.trust_env = False
        session.headers["X-Auth-Token"] = "admin"
        yield HttpPlacement(SessionTransport(session, f"http://127.0.0.1:{reference.fresh()}"))


@pytest.fixture(params=[*OURS, REFERENCE])
def crowded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Hosts of which nobody would be found among the first that Placement names."""
    made: list[Yard] = []

    def make(hosts: int = 4, **options: object) -> Harbour:
        options = {**OPTIONS, **options}
        if request.param == REFERENCE:
            client = request.getfixturevalue("to_reference")
            url = request.getfixturevalue("sqlite_url")
            yard: Yard = ReferenceYard(
                url, tmp_path / "agents", hosts, client, **{"agent.inventory_interval": 60.0, **options}
            )
        else:
            url = request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
            yard = Yard(url, tmp_path / "agents", hosts, None, **options)
        made.append(yard)
        return Harbour(yard, tmp_path)

    yield make
    for one in made:
        one.stop()


def crowd(place: Harbour) -> None:
    """The reference is told of one provider at a time."""
    place.crowd(12 if isinstance(place.cloud, ReferenceYard) else 40)


def test_a_server_is_created_on_the_host_asked_for(crowded: Make) -> None:
    place = crowded(hosts=3)
    crowd(place)
    for where in (
        {"availability_zone": "nova:fake-3"},
        {"availability_zone": "nova:fake-3:fake-3"},
        {"availability_zone": "nova::fake-3"},
        {"host": "fake-3"},
        {"hypervisor_hostname": "fake-3"},
        {"host": "fake-3", "hypervisor_hostname": "fake-3"},
    ):
        uuid = place.running(**where)
        assert place.trees_asked_for() == [place.node_of("fake-3")]
        place.only_on(uuid, "fake-3")
        place.cloud.delete(uuid)
        place.cloud.await_gone([uuid])


def test_a_server_is_migrated_to_the_host_asked_for(crowded: Make) -> None:
    place = crowded()
    uuid = place.running(host="fake-1")
    crowd(place)
    place.act(uuid, {"migrate": {"host": "fake-4"}})
    place.settled(uuid, "VERIFY_RESIZE")
    assert place.trees_asked_for() == [place.node_of("fake-4")]
    place.on_both(uuid, "fake-1", "fake-4")
    place.act(uuid, {"revertResize": None})
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, "fake-1")
    place.act(uuid, {"migrate": {"host": "fake-4"}})
    place.settled(uuid, "VERIFY_RESIZE")
    place.act(uuid, {"confirmResize": None}, status=204)
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, "fake-4")


def test_a_server_is_migrated_live_to_the_host_asked_for(crowded: Make) -> None:
    place = crowded()
    uuid = place.running(host="fake-1")
    crowd(place)
    place.act(uuid, {"os-migrateLive": {"host": "fake-4", "block_migration": "auto"}})
    place.settled(uuid, "ACTIVE")
    assert place.trees_asked_for() == [place.node_of("fake-4")]
    place.only_on(uuid, "fake-4")


def test_a_server_is_evacuated_to_the_host_asked_for(crowded: Make) -> None:
    place = crowded()
    uuid = place.running(host="fake-1")
    crowd(place)
    place.die("fake-1")
    place.act(uuid, {"evacuate": {"host": "fake-4"}}, status=200)
    place.settled(uuid, "SHUTOFF")
    assert place.trees_asked_for() == [place.node_of("fake-4")]
    place.only_on(uuid, "fake-4")


def test_a_host_is_found_behind_all_that_will_not_do(crowded: Make) -> None:
    """There is one host that the server can go to, and it is not among the first that Placement names."""
    place = crowded(hosts=2)
    uuid = place.running(host="fake-1")
    crowd(place)
    for body, target in (({"resize": {"flavorRef": "2"}}, "fake-2"), ({"migrate": None}, "fake-1")):
        place.act(uuid, body)
        place.settled(uuid, "VERIFY_RESIZE")
        assert place.trees_asked_for() == []
        place.act(uuid, {"confirmResize": None}, status=204)
        place.settled(uuid, "ACTIVE")
        place.only_on(uuid, target)
    place.act(uuid, {"os-migrateLive": {"host": None, "block_migration": "auto"}})
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, "fake-2")
    place.die("fake-2")
    place.act(uuid, {"evacuate": {}}, status=200)
    place.settled(uuid, "SHUTOFF")
    assert place.trees_asked_for() == []
    place.only_on(uuid, "fake-1")


def test_a_new_image_is_checked_against_the_one_host(crowded: Make) -> None:
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


def test_a_new_image_keeps_to_the_isolation_of_a_full_host(crowded: Make) -> None:
    """What keeps a server with such an image out of the host at its boot does so when it is made anew."""
    place = crowded(hosts=2, **{"fake.vcpus": 1, "fake.traits": ["CUSTOM_LICENSED", "COMPUTE_NODE"]})
    licensed = place.add_image({"trait:CUSTOM_LICENSED": "required", "os_distro": "debian"})
    place.make_aggregate("licensed", "fake-1", {"trait:CUSTOM_LICENSED": "required", "os_distro": "debian"})
    uuid = place.running(host="fake-1", imageRef=licensed)
    crowd(place)
    before = place.held(uuid)
    wanted = {"trait:CUSTOM_LICENSED": "required"}
    for properties, words in (
        ({**wanted, "os_distro": "windows"}, "images with another os_distro"),
        ({"os_distro": "debian"}, "only servers that ask for CUSTOM_LICENSED"),
    ):
        other = place.add_image(properties)
        place.act(uuid, {"rebuild": {"imageRef": other}})
        server = place.settled(uuid, "ACTIVE")
        assert server["image"]["id"] == licensed
        assert place.last_error(uuid).startswith("No valid host was found")
        assert words in place.last_error(uuid)
    for properties in (wanted, {**wanted, "os_distro": "debian"}):
        other = place.add_image(properties)
        place.act(uuid, {"rebuild": {"imageRef": other}})
        assert place.settled(uuid, "ACTIVE")["image"]["id"] == other
        assert place.only_on(uuid, "fake-1").image == other
    assert place.held(uuid) == before
    assert place.cloud.asked.queries == []  # no candidates were asked for, which a full host is none of


def full(place: Harbour) -> str:
    """How a user is told that a host is full; the reference does not say of what."""
    return "too full" if isinstance(place.cloud, ReferenceYard) else "vcpu: needs 1, free 0 of 4"


def test_a_target_that_is_full_down_or_disabled_is_told_with_the_reason(crowded: Make) -> None:
    place = crowded(hosts=4)
    uuid = place.running(host="fake-1")
    place.running_many(4, host="fake-2")
    place.set_service("fake-3", status="disabled")
    place.die("fake-4")
    for host, words in (("fake-2", full(place)), ("fake-3", "disabled"), ("fake-4", "down")):
        place.act(uuid, {"migrate": {"host": host}})
        place.settled(uuid, "ACTIVE")
        assert place.migrations(uuid)[0]["status"] == "error"
        error = place.last_error(uuid)
        assert "No valid host was found" in error
        assert words in error.lower()
        assert place.traces(uuid)[-1]["trace"]["chosen"] is None
    assert set(place.held(uuid)) == {"fake-1"}


def test_a_new_server_is_told_why_it_can_not_have_the_host_asked_for(crowded: Make) -> None:
    place = crowded(hosts=3)
    place.running_many(4, host="fake-1")
    place.set_service("fake-2", status="disabled")
    place.die("fake-3")
    for host, words in (("fake-1", full(place)), ("fake-2", "disabled"), ("fake-3", "down")):
        (server,) = place.cloud.await_status(place.cloud.boot(host=host), "ERROR")
        assert "No valid host was found" in server["fault"]["message"]
        assert words in server["fault"]["message"].lower()
        assert place.traces(server["id"])


def test_a_host_of_many_nodes_is_asked_for_all_of_them_at_once(crowded: Make) -> None:
    place = crowded(hosts=2, **{"fake.nodes": 6, "fake.resource_class": "CUSTOM_METAL"})
    place.make_flavor("metal", "CUSTOM_METAL")
    place.await_mirrored()
    place.cloud.asked.queries.clear()
    booted = [place.running(flavorRef="metal", host="fake-2") for _ in range(3)]
    asked = [dict(query) for query in place.cloud.asked.queries]
    assert [query["member_of"] for query in asked] == [f"in:{own_aggregate.of_host('fake-2')}"] * 3
    assert not any("in_tree" in query for query in asked)
    assert {place.host_of(uuid) for uuid in booted} == {"fake-2"}
    assert len({place.cloud.server(uuid)["OS-EXT-SRV-ATTR:hypervisor_hostname"] for uuid in booted}) == 3
    place.running_many(3, flavorRef="metal", host="fake-2")
    (server,) = place.cloud.await_status(place.cloud.boot(flavorRef="metal", host="fake-2"), "ERROR")
    if not isinstance(place.cloud, ReferenceYard):  # which can't tell
        assert "of 6 nodes of the host that it has to go to, 6 don't have 1" in server["fault"]["message"]
    place.set_service("fake-2", status="disabled")
    (server,) = place.cloud.await_status(place.cloud.boot(flavorRef="metal", host="fake-2"), "ERROR")
    assert "the host that it has to go to does not fit (it is disabled)" in server["fault"]["message"]
