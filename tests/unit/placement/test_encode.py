"""The shape of the answer at each microversion, and that kept summaries never go stale."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.search.candidates import find_candidates
from moorage.placement.search.encode import AnswerShape, CandidateEncoder
from moorage.placement.search.request import RequestGroup, SearchRequest
from tests.unit.placement.fleets import CLASS_IDS, CLASSES, TRAITS, fleet_of, inventory, provider, uuid

REQUEST = SearchRequest((RequestGroup(resources={"VCPU": 1}), RequestGroup("_NET", {"SRIOV_NET_VF": 1})))


@pytest.fixture
def fleet() -> Fleet:
    return fleet_of(
        [
            provider(1, {"VCPU": inventory(8, used=2), "MEMORY_MB": 1024}, ["CUSTOM_RED"]),
            provider(2, {"SRIOV_NET_VF": 4}, parent=1, root=1),
        ]
    )


def body(fleet: Fleet, minor: int, encoder: CandidateEncoder | None = None) -> Any:
    result = find_candidates(fleet, REQUEST)
    encoder = encoder or CandidateEncoder(fleet)
    return msgspec.json.decode(encoder.encode(result, AnswerShape.at(minor), {"VCPU", "SRIOV_NET_VF"}))


def test_the_newest_shape_has_everything(fleet: Fleet) -> None:
    assert body(fleet, 39) == {
        "allocation_requests": [
            {
                "allocations": {
                    uuid(1): {"resources": {"VCPU": 1}},
                    uuid(2): {"resources": {"SRIOV_NET_VF": 1}},
                },
                "mappings": {"": [uuid(1)], "_NET": [uuid(2)]},
            }
        ],
        "provider_summaries": {
            uuid(1): {
                "resources": {
                    "VCPU": {"capacity": 8, "used": 2},
                    "MEMORY_MB": {"capacity": 1024, "used": 0},
                },
                "traits": ["CUSTOM_RED"],
                "parent_provider_uuid": None,
                "root_provider_uuid": uuid(1),
            },
            uuid(2): {
                "resources": {"SRIOV_NET_VF": {"capacity": 4, "used": 0}},
                "traits": [],
                "parent_provider_uuid": uuid(1),
                "root_provider_uuid": uuid(1),
            },
        },
    }


def test_the_oldest_shape_lists_allocations(fleet: Fleet) -> None:
    answer = body(fleet, 10)
    (request,) = answer["allocation_requests"]
    assert sorted(request) == ["allocations"]
    assert {"resource_provider": {"uuid": uuid(1)}, "resources": {"VCPU": 1}} in request["allocations"]
    assert answer["provider_summaries"][uuid(1)] == {"resources": {"VCPU": {"capacity": 8, "used": 2}}}


@pytest.mark.parametrize(
    ("minor", "keys"),
    [
        (16, {"resources"}),
        (17, {"resources", "traits"}),
        (28, {"resources", "traits"}),
        (29, {"resources", "traits", "parent_provider_uuid", "root_provider_uuid"}),
    ],
)
def test_summaries_grow_with_the_microversion(fleet: Fleet, minor: int, keys: set[str]) -> None:
    assert set(body(fleet, minor)["provider_summaries"][uuid(1)]) == keys


@pytest.mark.parametrize(("minor", "classes"), [(26, {"VCPU"}), (27, {"VCPU", "MEMORY_MB"})])
def test_unrequested_classes_show_from_1_27(fleet: Fleet, minor: int, classes: set[str]) -> None:
    assert set(body(fleet, minor)["provider_summaries"][uuid(1)]["resources"]) == classes


@pytest.mark.parametrize(("minor", "mapped"), [(33, False), (34, True)])
def test_mappings_show_from_1_34(fleet: Fleet, minor: int, mapped: bool) -> None:
    assert ("mappings" in body(fleet, minor)["allocation_requests"][0]) is mapped


def test_nothing_found_is_an_empty_answer() -> None:
    assert body(fleet_of([]), 39) == {"allocation_requests": [], "provider_summaries": {}}


def test_every_change_shows_in_the_next_answer(fleet: Fleet) -> None:
    encoder = CandidateEncoder(fleet)

    def summaries() -> Any:
        found = body(fleet, 39, encoder)["provider_summaries"]
        assert found == body(fleet, 39)["provider_summaries"]
        return found

    summaries()
    fleet.update_usage(1, 1, 1.0, {CLASS_IDS["VCPU"]: 3})
    assert summaries()[uuid(1)]["resources"]["VCPU"]["used"] == 3
    fleet.apply([provider(2, {"SRIOV_NET_VF": 5}, ["CUSTOM_BLUE"], parent=1, root=1)])
    assert summaries()[uuid(2)]["traits"] == ["CUSTOM_BLUE"]
    fleet.names.set_classes({**CLASSES, 1: "CUSTOM_RENAMED"})
    assert "CUSTOM_RENAMED" in summaries()[uuid(1)]["resources"]
    fleet.names.set_traits({**TRAITS, 99: "CUSTOM_NEW"})
    fleet.apply([provider(1, {"VCPU": 8})._replace(trait_ids=(99,))])
    assert summaries()[uuid(1)]["traits"] == ["CUSTOM_NEW"]
