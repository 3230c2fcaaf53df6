"""How many more fit: exact where providers stand alone, never too many anywhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import assume, given, settings

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.record import ProviderRecord
from moorage.placement.search.candidates import find_candidates
from moorage.placement.search.capacity import how_many_fit
from moorage.placement.search.request import GroupPolicy, RequestGroup, SearchRequest
from tests.support.examples import examples
from tests.unit.placement.fleets import AGGREGATES, CLASS_IDS, fleet_of, fleets, inventory, provider
from tests.unit.placement.requests import requests

VM = SearchRequest((RequestGroup(resources={"VCPU": 4, "MEMORY_MB": 1000}),))


def test_the_scarcest_class_decides_on_each_provider() -> None:
    fleet = fleet_of(
        [
            provider(1, {"VCPU": inventory(32, used=2), "MEMORY_MB": 5000}),
            provider(2, {"VCPU": 8, "MEMORY_MB": 99_000}),
            provider(3, {"VCPU": inventory(100, max_unit=2), "MEMORY_MB": 99_000}),
        ]
    )
    capacity = how_many_fit(fleet, VM)
    assert (capacity.total, capacity.exact, capacity.trees) == (5 + 2, True, 2)
    assert capacity.by_aggregate is None


def test_counts_by_aggregate_leave_out_those_with_none() -> None:
    stock: dict[str, int | dict[str, int]] = {"VCPU": 8, "MEMORY_MB": 9000}
    fleet = fleet_of(
        [
            provider(1, stock, aggregates=AGGREGATES[:2]),
            provider(2, stock, aggregates=AGGREGATES[:1]),
            provider(3, aggregates=AGGREGATES[2:]),
            provider(4, stock),
        ]
    )
    capacity = how_many_fit(fleet, VM, by_aggregate=True)
    assert capacity.total == 6
    assert capacity.by_aggregate == {AGGREGATES[0]: 4, AGGREGATES[1]: 2}


def test_a_shared_disk_is_not_counted_twice() -> None:
    shared = provider(9, {"DISK_GB": 50}, ["MISC_SHARES_VIA_AGGREGATE"], AGGREGATES[:1])
    hosts = [provider(number, {"VCPU": 8}, aggregates=AGGREGATES[:1]) for number in (1, 2)]
    fleet = fleet_of([*hosts, shared])
    capacity = how_many_fit(fleet, SearchRequest((RequestGroup(resources={"VCPU": 1, "DISK_GB": 10}),)))
    assert capacity.total == 5
    assert not capacity.exact


def test_groups_that_must_part_fill_separate_devices() -> None:
    devices = [provider(number, {"SRIOV_NET_VF": 2}, parent=1, root=1) for number in (2, 3)]
    fleet = fleet_of([provider(1), *devices])
    groups = tuple(RequestGroup(suffix, {"SRIOV_NET_VF": 1}) for suffix in ("_A", "_B"))
    assert how_many_fit(fleet, SearchRequest(groups, group_policy=GroupPolicy.ISOLATE)).total == 2


@settings(max_examples=examples(300), deadline=None)
@given(fleets(), requests())
def test_an_exact_count_is_what_can_be_claimed_one_by_one(
    records: list[ProviderRecord], request: SearchRequest
) -> None:
    fleet = fleet_of(records)
    assume(find_candidates(fleet, request).candidates)
    promised = how_many_fit(fleet, request)
    free = sum((Counter(_free(fleet, slot)) for slot in fleet.slots()), Counter[int]())
    claimed = 0
    while candidates := find_candidates(fleet, replace(request, limit=1)).candidates:
        claimed += 1
        for slot, resources in candidates[0].allocations.items():
            held = fleet.inventory(slot)
            used = {CLASS_IDS[name]: held[CLASS_IDS[name]][1] + n for name, n in resources.items()}
            fleet.update_usage(fleet.ids[slot], 1, 1.0, used)
    assert promised.total > 0
    if promised.exact:
        assert claimed == promised.total
    for name, amount in _asked(request).items():
        assert promised.total * amount <= free[CLASS_IDS[name]]


def _free(fleet: Fleet, slot: int) -> dict[int, int]:
    return {number: max(capacity - used, 0) for number, (capacity, used) in fleet.inventory(slot).items()}


def _asked(request: SearchRequest) -> Counter[str]:
    return sum((Counter(group.resources) for group in request.groups), Counter[str]())
