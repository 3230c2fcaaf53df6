"""Why nothing was found: each condition counted alone and in order, and the nearest misses."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings

from moorage.placement.fleet.record import ProviderRecord
from moorage.placement.search.checks import ConditionKind
from moorage.placement.search.request import GroupPolicy, RequestGroup, SearchRequest
from moorage.placement.search.why import Condition, Explanation, ProviderCount, explain
from tests.support.examples import examples
from tests.unit.placement.fleets import AGGREGATES, fleet_of, fleets, inventory, provider, uuid
from tests.unit.placement.oracle import Oracle
from tests.unit.placement.requests import requests

RED = (frozenset({"CUSTOM_RED"}),)


def condition(told: Explanation, kind: ConditionKind) -> Condition:
    (found,) = [one for one in told.conditions if one.kind is kind]
    return found


def test_each_condition_is_counted_alone_and_in_order() -> None:
    fleet = fleet_of(
        [
            provider(1, {"VCPU": inventory(32, used=26)}, ["CUSTOM_RED"]),
            provider(2, {"VCPU": inventory(32, used=30)}),
            provider(3, {"VCPU": inventory(32, max_unit=4)}),
            provider(4, {"MEMORY_MB": 1024}, ["CUSTOM_RED"]),
        ]
    )
    told = explain(fleet, SearchRequest((RequestGroup(resources={"VCPU": 8}, required_traits=RED),)))
    assert told.total == ProviderCount(trees=4, providers=4)
    counted = [(one.kind, one.excludes_alone.trees, one.left.trees) for one in told.conditions]
    assert counted == [
        (ConditionKind.INVENTORY, 1, 3),
        (ConditionKind.ROOM, 3, 1),
        (ConditionKind.MAX_UNIT, 2, 0),
        (ConditionKind.REQUIRED_TRAITS, 2, 0),
    ]
    assert told.excludes_most is not None
    assert told.excludes_most.kind is ConditionKind.ROOM
    assert told.trees_left == 0


def test_the_nearest_miss_says_by_how_much() -> None:
    fleet = fleet_of(
        [
            provider(1, {"VCPU": inventory(32, used=26)}, ["CUSTOM_RED"]),
            provider(2, {"VCPU": inventory(32, used=30)}),
        ]
    )
    told = explain(fleet, SearchRequest((RequestGroup(resources={"VCPU": 8}, required_traits=RED),)))
    assert [miss.uuid for miss in told.near_misses] == [uuid(1), uuid(2)]
    assert [str(failure) for failure in told.near_misses[0].failures] == ["VCPU: needs 8, free 6 of 32"]
    assert [str(failure) for failure in told.near_misses[1].failures] == [
        "VCPU: needs 8, free 2 of 32",
        "lacks CUSTOM_RED",
    ]


def test_units_are_told_apart_from_room() -> None:
    fleet = fleet_of([provider(1, {"VCPU": inventory(32, min_unit=4, max_unit=16, step_size=4)})])
    small = explain(fleet, SearchRequest((RequestGroup(resources={"VCPU": 2}),)))
    large = explain(fleet, SearchRequest((RequestGroup(resources={"VCPU": 17}),)))
    assert [str(failure) for failure in small.near_misses[0].failures] == [
        "VCPU: needs 2, min_unit is 4",
        "VCPU: needs 2, step_size is 4",
    ]
    assert [failure.kind for failure in large.near_misses[0].failures] == [
        ConditionKind.MAX_UNIT,
        ConditionKind.STEP_SIZE,
    ]


def test_conditions_between_providers_come_last() -> None:
    """Two groups on one device are fine until each must have a device of its own."""
    fleet = fleet_of([provider(1), provider(2, {"SRIOV_NET_VF": 8}, parent=1, root=1)])
    groups = tuple(RequestGroup(suffix, {"SRIOV_NET_VF": 1}) for suffix in ("_A", "_B"))
    told = explain(fleet, SearchRequest(groups, group_policy=GroupPolicy.ISOLATE))
    assert condition(told, ConditionKind.TOGETHER).left.trees == 1
    assert condition(told, ConditionKind.GROUP_POLICY).left.trees == 0
    assert told.near_misses[0].failures[0].kind is ConditionKind.GROUP_POLICY


def test_aggregates_and_trees_are_conditions_too() -> None:
    fleet = fleet_of([provider(1, {"VCPU": 8}, aggregates=AGGREGATES[:1]), provider(2, {"VCPU": 8})])
    group = RequestGroup(resources={"VCPU": 1}, member_of=(frozenset(AGGREGATES[:1]),), in_tree=uuid(2))
    told = explain(fleet, SearchRequest((group,)))
    assert condition(told, ConditionKind.MEMBER_OF).excludes_alone == ProviderCount(trees=1, providers=1)
    assert condition(told, ConditionKind.IN_TREE).left == ProviderCount(trees=1, providers=1)


def test_a_tree_that_is_not_there_leaves_nothing() -> None:
    fleet = fleet_of([provider(1, {"VCPU": 8}, ["CUSTOM_RED"])])
    bare = RequestGroup("_A", required_traits=RED, in_tree=uuid(99))
    told = explain(fleet, SearchRequest((RequestGroup(resources={"VCPU": 1}), bare)))
    assert condition(told, ConditionKind.IN_TREE).excludes_alone == ProviderCount(trees=1, providers=1)
    assert told.trees_left == 0


def test_it_becomes_json() -> None:
    fleet = fleet_of([provider(1, {"VCPU": 8})])
    told = explain(fleet, SearchRequest((RequestGroup(resources={"VCPU": 9}),)))
    assert msgspec.json.decode(msgspec.json.encode(told), type=Explanation) == told


@settings(max_examples=examples(500), deadline=None)
@given(fleets(), requests())
def test_what_is_left_is_what_has_candidates(records: list[ProviderRecord], request: SearchRequest) -> None:
    told = explain(fleet_of(records), request, misses=len(records))
    assert told.trees_left == len(Oracle(records).anchors(request))
    trees = sum(record.parent_id is None for record in records)
    assert len(told.near_misses) == trees - told.trees_left
    lefts = [trees, *(one.left.trees for one in told.conditions), told.trees_left]
    assert lefts == sorted(lefts, reverse=True)
    for one in told.conditions:
        assert one.exact
        assert 0 <= one.excludes_alone.trees <= trees
