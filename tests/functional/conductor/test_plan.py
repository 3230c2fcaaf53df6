"""A plan is what would happen: it makes nothing, and what is made afterwards goes where it said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from moorage.core import uuids
from moorage.placement.client.contract import ConsumerClaim
from moorage.placement.client.local import LocalPlacement
from tests.functional.conductor.conftest import Yard

Make = Callable[..., Yard]


def plan(cloud: Yard, count: int = 1, hints: dict[str, Any] | None = None, **fields: Any) -> Any:
    reply = ask(cloud, count, hints, **fields)
    assert reply.status_code == 200, reply.text
    return reply.json["plan"]["servers"]


def ask(cloud: Yard, count: int, hints: dict[str, Any] | None = None, **fields: Any) -> Any:
    asked = {"flavorRef": "1", "imageRef": cloud.image(), "count": count, **fields}
    body = {"plan": asked, "os:scheduler_hints": hints or {}}
    return cloud.api.simulate_post("/v2.1/moorage-plan", json=body)


def hosts_of(planned: Any) -> Counter[str]:
    return Counter(server["place"]["host"] if server["place"] else "" for server in planned)


@pytest.fixture(scope="module")
def wide(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """Four hosts, which examples make unequal and share."""
    options: dict[str, Any] = {
        "fake.vcpus": 6,
        "quota.instances": -1,
        "quota.cores": -1,
        "quota.ram": -1,
    }
    cloud = Yard(module_database_url, tmp_path_factory.mktemp("agents"), 4, **options)
    yield cloud
    cloud.stop()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(used=st.lists(st.integers(0, 120_000), min_size=4, max_size=4, unique=True), count=st.integers(1, 16))
def test_what_is_made_next_goes_where_the_plan_said(wide: Yard, used: list[int], count: int) -> None:
    client = LocalPlacement(wide.placement)
    holders = [uuids.generate() for _ in used]
    nodes = [found["id"] for found in wide.get("/v2.1/os-hypervisors")["hypervisors"]]
    claims = [
        ConsumerClaim(holder, {node: {"MEMORY_MB": amount + 1}}, "p", "u")
        for holder, node, amount in zip(holders, nodes, used, strict=True)
    ]
    assert client.claim(claims) == [None] * 4
    try:
        planned = plan(wide, count)
        for server in planned:  # among equals a server's UUID decides, which a plan can't know
            ranking = server["trace"]["ranking"]
            assume(len(ranking) < 2 or ranking[0]["weight"] != ranking[1]["weight"])
        made = wide.await_status(wide.boot(count=count), "ACTIVE", "ERROR")
        wide.await_rest()
        assert Counter(server["OS-EXT-SRV-ATTR:host"] or "" for server in made) == hosts_of(planned)
        assert all(server["status"] == "ACTIVE" for server in made)
        for server in made:
            wide.delete(server["id"])
        wide.await_gone([server["id"] for server in made])
    finally:
        client.release(holders)


def test_a_plan_makes_and_claims_nothing(yard: Make) -> None:
    cloud = yard(hosts=2)
    assert hosts_of(plan(cloud, 2)) == {"fake-1": 1, "fake-2": 1}
    assert cloud.get("/v2.1/servers")["servers"] == []
    assert cloud.holders() == cloud.addressed() == set()


def test_those_for_whom_no_room_is_left_are_told_as_a_server_would_be(yard: Make) -> None:
    cloud = yard(hosts=2)
    planned = plan(cloud, 5)
    assert [server["place"] is not None for server in planned] == [True] * 4 + [False]
    made = cloud.await_status(cloud.boot(count=5), "ACTIVE", "ERROR")
    (failed,) = [server for server in made if server["status"] == "ERROR"]
    assert planned[4]["sentence"] == failed["fault"]["message"]


def test_a_server_too_large_for_all_is_told_with_the_same_numbers(yard: Make) -> None:
    cloud = yard(hosts=2)
    (planned,) = plan(cloud, flavorRef="5")
    (failed,) = cloud.await_status(cloud.boot(flavorRef="5"), "ERROR")
    assert planned["sentence"] == failed["fault"]["message"]
    assert planned["trace"]["why"]["nearest"]


def test_hints_groups_and_a_host_count_in_a_plan(yard: Make) -> None:
    cloud = yard(hosts=2)
    group = {"server_group": {"name": "apart", "policy": "anti-affinity"}}
    uuid = cloud.api.simulate_post("/v2.1/os-server-groups", json=group).json["server_group"]["id"]
    assert hosts_of(plan(cloud, 3, {"group": uuid})) == {"fake-1": 1, "fake-2": 1, "": 1}
    assert hosts_of(plan(cloud, 2, host="fake-2")) == {"fake-2": 2}
    assert ask(cloud, 1, {"group": uuids.generate()}).status_code == 400
    assert ask(cloud, 1, {"group": uuid}, project_id="others").status_code == 400


@pytest.mark.parametrize(
    "fields",
    [{"count": 0}, {"count": 1001}, {"flavorRef": "no"}, {"imageRef": uuids.generate()}, {"zone": "x"}],
)
def test_a_plan_that_makes_no_sense_is_refused(sqlite_url: str, tmp_path: Path, fields: Any) -> None:
    cloud = Yard(sqlite_url, tmp_path / "agents", 0)
    try:
        assert ask(cloud, fields.pop("count", 1), **fields).status_code == 400
    finally:
        cloud.stop()
