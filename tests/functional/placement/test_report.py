"""The bulk report, and the two questions of ours: why nothing fits, and how many more would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from falcon.testing import Result, TestClient

from moorage.core import config
from moorage.db.tables.placement import changes
from moorage.placement.service import PlacementService
from moorage.placement.wsgi import OPTIONS, build

RACK = "a0000000-0000-4000-8000-000000000001"
CONSUMER = "c0000000-0000-4000-8000-000000000001"


def uuid_of(number: int) -> str:
    return f"10000000-0000-4000-8000-{number:012}"


def node(number: int, **more: Any) -> dict[str, Any]:
    plain = {
        "uuid": uuid_of(number),
        "name": f"node-{number}",
        "inventories": {"VCPU": {"total": 8}, "CUSTOM_GPU": {"total": 2}},
        "traits": ["HW_CPU_X86_VMX", "CUSTOM_BLUE"],
        "aggregates": [RACK],
    }
    return {**plain, **more}


class Fleet:
    """The service of a test, and what a reporter does to it."""

    def __init__(self, service: PlacementService, api: TestClient) -> None:
        self.service = service
        self.api = api

    def send(self, *nodes: dict[str, Any]) -> Result:
        return self.api.simulate_post("/moorage/v1/providers", json={"providers": list(nodes)})

    def report(self, *nodes: dict[str, Any]) -> dict[str, int]:
        reply = self.send(*nodes)
        assert reply.status_code == 200, reply.text
        return {name: reply.json[name] for name in ("created", "updated", "unchanged")}

    def get(self, path: str) -> Any:
        reply = self.api.simulate_get(path)
        assert reply.status_code == 200, reply.text
        return reply.json

    def generation(self, number: int) -> int:
        return int(self.get(f"/resource_providers/{uuid_of(number)}")["generation"])

    def feed_length(self) -> int:
        with self.service.database.read() as connection:
            return int(connection.execute(sa.select(sa.func.count()).select_from(changes)).scalar_one())


@pytest.fixture
def fleet(database_url: str) -> Iterator[Fleet]:
    overrides = {"database.connection": database_url, "auth.strategy": "none"}
    conf = config.read([], OPTIONS, overrides)
    service = PlacementService.from_conf(conf)
    service.start()
    headers = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
    yield Fleet(service, TestClient(build(conf, service), headers=headers))
    service.stop()


def test_changes_of_traits_leave_the_others_alone(fleet: Fleet) -> None:
    fleet.report(node(1))
    change = {"uuid": uuid_of(1), "name": "node-1"}
    red = {**change, "add_traits": ["CUSTOM_RED"], "remove_traits": ["CUSTOM_BLUE", "CUSTOM_UNHEARD_OF"]}
    assert fleet.report(red) == {"created": 0, "updated": 1, "unchanged": 0}
    traits = fleet.get(f"/resource_providers/{uuid_of(1)}/traits")["traits"]
    assert set(traits) == {"HW_CPU_X86_VMX", "CUSTOM_RED"}
    assert fleet.report(red) == {"created": 0, "updated": 0, "unchanged": 1}
    assert fleet.send({**change, "add_traits": ["NO_SUCH_TRAIT"]}).status_code == 400
    assert fleet.send({**red, "traits": ["CUSTOM_RED"]}).status_code == 400
    assert fleet.send({**red, "remove_traits": ["CUSTOM_RED"]}).status_code == 400
    assert fleet.report({**node(2), "traits": None, "add_traits": ["CUSTOM_RED"]})["created"] == 1
    assert fleet.get(f"/resource_providers/{uuid_of(2)}/traits")["traits"] == ["CUSTOM_RED"]


def test_new_providers_are_whole_and_custom_names_are_made(fleet: Fleet) -> None:
    assert fleet.report(node(1), node(2)) == {"created": 2, "updated": 0, "unchanged": 0}
    path = f"/resource_providers/{uuid_of(1)}"
    assert set(fleet.get(f"{path}/inventories")["inventories"]) == {"VCPU", "CUSTOM_GPU"}
    assert set(fleet.get(f"{path}/traits")["traits"]) == {"HW_CPU_X86_VMX", "CUSTOM_BLUE"}
    assert fleet.get(f"{path}/aggregates")["aggregates"] == [RACK]
    found = fleet.get("/allocation_candidates?resources=CUSTOM_GPU:1&required=CUSTOM_BLUE")
    assert len(found["allocation_requests"]) == 2


def test_what_is_unchanged_costs_no_generation_and_no_feed(fleet: Fleet) -> None:
    fleet.report(node(1), node(2))
    before = (fleet.generation(1), fleet.feed_length())
    assert fleet.report(node(1), node(2)) == {"created": 0, "updated": 0, "unchanged": 2}
    assert (fleet.generation(1), fleet.feed_length()) == before


def test_only_what_differs_is_written(fleet: Fleet) -> None:
    fleet.report(node(1), node(2))
    changed = node(2, inventories={"VCPU": {"total": 16, "allocation_ratio": 2.0}}, traits=["CUSTOM_RED"])
    assert fleet.report(node(1), changed) == {"created": 0, "updated": 1, "unchanged": 1}
    assert (fleet.generation(1), fleet.generation(2)) == (1, 2)
    path = f"/resource_providers/{uuid_of(2)}"
    assert fleet.get(f"{path}/inventories")["inventories"]["VCPU"]["total"] == 16
    assert fleet.get(f"{path}/traits")["traits"] == ["CUSTOM_RED"]


def test_what_is_left_out_stays(fleet: Fleet) -> None:
    fleet.report(node(1))
    fleet.report({"uuid": uuid_of(1), "name": "renamed"})
    path = f"/resource_providers/{uuid_of(1)}"
    assert fleet.get(path)["name"] == "renamed"
    assert set(fleet.get(f"{path}/inventories")["inventories"]) == {"VCPU", "CUSTOM_GPU"}
    assert fleet.get(f"{path}/aggregates")["aggregates"] == [RACK]


def test_children_may_come_before_their_parents(fleet: Fleet) -> None:
    fleet.report(node(3, parent_provider_uuid=uuid_of(2)), node(2, parent_provider_uuid=uuid_of(1)), node(1))
    assert fleet.get(f"/resource_providers/{uuid_of(3)}")["root_provider_uuid"] == uuid_of(1)
    fleet.report(node(3, parent_provider_uuid=None))
    assert fleet.get(f"/resource_providers/{uuid_of(3)}")["root_provider_uuid"] == uuid_of(3)


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        (node(2, name="node-1"), 409),
        (node(2, uuid="nonsense"), 400),
        (node(2, inventories={"NO_SUCH_CLASS": {"total": 1}}), 400),
        (node(2, traits=["NO_SUCH_TRAIT"]), 400),
        (node(2, inventories={"VCPU": {"total": 1, "reserved": 2}}), 400),
        (node(2, parent_provider_uuid=uuid_of(99)), 400),
        (node(2, surprise=True), 400),
        (node(1), 400),
    ],
    ids=["name", "uuid", "class", "trait", "reserved", "parent", "field", "twice"],
)
def test_one_wrong_provider_changes_nothing_at_all(fleet: Fleet, wrong: dict[str, Any], status: int) -> None:
    assert fleet.send(node(1), wrong).status_code == status
    assert fleet.get("/resource_providers")["resource_providers"] == []


def test_an_inventory_in_use_is_not_reported_away(fleet: Fleet) -> None:
    fleet.report(node(1))
    claim = {
        "allocations": {uuid_of(1): {"resources": {"CUSTOM_GPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert fleet.api.simulate_put(f"/allocations/{CONSUMER}", json=claim).status_code == 204
    refused = fleet.send(node(1, inventories={"VCPU": {"total": 8}}), node(2))
    assert (refused.status_code, "CUSTOM_GPU" in refused.text) == (409, True)
    assert len(fleet.get("/resource_providers")["resource_providers"]) == 1
    assert fleet.report(node(1)) == {"created": 0, "updated": 0, "unchanged": 1}


def test_why_counts_what_each_condition_excludes(fleet: Fleet) -> None:
    fleet.report(node(1), node(2, traits=[]), node(3, inventories={"VCPU": {"total": 2}}))
    why = fleet.get("/moorage/v1/why?resources=VCPU:4&required=CUSTOM_BLUE,HW_CPU_X86_AVX2")
    assert (why["total"]["trees"], why["trees_left"]) == (3, 0)
    assert why["excludes_most"]["subject"] == "HW_CPU_X86_AVX2"
    assert why["near_misses"][0]["name"] == "node-1"


def test_capacity_counts_how_many_more_fit(fleet: Fleet) -> None:
    fleet.report(node(1), node(2, aggregates=[]))
    found = fleet.get("/moorage/v1/capacity?resources=VCPU:3&by_aggregate=true")
    assert (found["total"], found["exact"], found["by_aggregate"]) == (4, True, {RACK: 2})
