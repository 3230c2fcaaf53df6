"""Allocation candidates, rule by rule: the contract in examples."""

from __future__ import annotations

import time

import pytest

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.names import UnknownClassError, UnknownTraitError
from moorage.placement.search.candidates import find_candidates
from moorage.placement.search.request import GroupPolicy, RequestGroup, SearchRequest
from moorage.placement.search.result import SearchOptions, Strategy, TreeOrder
from tests.unit.placement.fleets import AGGREGATES, fleet_of, inventory, provider, uuid

SHARING = "MISC_SHARES_VIA_AGGREGATE"
NET = {"SRIOV_NET_VF": 1}


def ids(
    fleet: Fleet, request: SearchRequest, options: SearchOptions | None = None
) -> list[dict[int, dict[str, int]]]:
    """The allocations found, by provider id."""
    return [
        {fleet.ids[slot]: resources for slot, resources in candidate.allocations.items()}
        for candidate in find_candidates(fleet, request, options).candidates
    ]


def group(suffix: str = "", **resources: int) -> RequestGroup:
    return RequestGroup(suffix, resources)


class TestOneProvider:
    def test_it_needs_all_the_resources(self) -> None:
        fleet = fleet_of([provider(1, {"VCPU": 4, "DISK_GB": 10}), provider(2, {"VCPU": 4})])
        assert ids(fleet, SearchRequest((group(VCPU=1, DISK_GB=5),))) == [{1: {"VCPU": 1, "DISK_GB": 5}}]

    def test_capacity_counts_reserve_ratio_and_use(self) -> None:
        stock = inventory(10, used=4, reserved=2, allocation_ratio=1.5)
        fleet = fleet_of([provider(1, {"VCPU": stock})])
        assert ids(fleet, SearchRequest((group(VCPU=8),))) == [{1: {"VCPU": 8}}]
        assert ids(fleet, SearchRequest((group(VCPU=9),))) == []

    def test_units_hold_for_each_group(self) -> None:
        fleet = fleet_of([provider(1, {"VCPU": inventory(64, min_unit=2, max_unit=8, step_size=2)})])
        assert [amount for amount in range(1, 12) if ids(fleet, SearchRequest((group(VCPU=amount),)))] == [
            2,
            4,
            6,
            8,
        ]

    def test_groups_that_meet_there_are_added_up(self) -> None:
        fleet = fleet_of([provider(1, {"VCPU": inventory(8, max_unit=5)})])
        policy = GroupPolicy.NONE
        assert ids(fleet, SearchRequest((group("1", VCPU=2), group("2", VCPU=3)), group_policy=policy)) == [
            {1: {"VCPU": 5}}
        ]
        assert ids(fleet, SearchRequest((group("1", VCPU=3), group("2", VCPU=3)), group_policy=policy)) == []

    def test_unknown_names_are_refused_whatever_else_is_asked(self) -> None:
        fleet = fleet_of([])
        with pytest.raises(UnknownClassError, match="CUSTOM_NONE"):
            find_candidates(fleet, SearchRequest((group(CUSTOM_NONE=1),)))
        with pytest.raises(UnknownTraitError, match="CUSTOM_NONE"):
            find_candidates(fleet, SearchRequest((group(VCPU=1),), root_forbidden=frozenset({"CUSTOM_NONE"})))


class TestTrees:
    @pytest.fixture
    def numa(self) -> Fleet:
        """A host with disk, two NUMA nodes with CPUs, and a network device below each."""
        return fleet_of(
            [
                provider(1, {"DISK_GB": 100}),
                provider(2, {"VCPU": 4}, ["CUSTOM_RED"], parent=1, root=1),
                provider(3, {"VCPU": 4}, parent=1, root=1),
                provider(4, {"SRIOV_NET_VF": 2}, parent=2, root=1),
                provider(5, {"SRIOV_NET_VF": 2}, parent=3, root=1),
            ]
        )

    def test_the_unsuffixed_group_spreads_over_the_tree(self, numa: Fleet) -> None:
        found = ids(numa, SearchRequest((group(VCPU=1, DISK_GB=1),)))
        assert found == [{1: {"DISK_GB": 1}, 2: {"VCPU": 1}}, {1: {"DISK_GB": 1}, 3: {"VCPU": 1}}]

    def test_a_granular_group_does_not(self, numa: Fleet) -> None:
        assert ids(numa, SearchRequest((group("1", VCPU=1, DISK_GB=1),))) == []

    def test_traits_may_come_from_any_provider_chosen(self, numa: Fleet) -> None:
        red = RequestGroup("", {"VCPU": 1, "DISK_GB": 1}, required_traits=(frozenset({"CUSTOM_RED"}),))
        assert ids(numa, SearchRequest((red,))) == [{1: {"DISK_GB": 1}, 2: {"VCPU": 1}}]

    def test_isolation_gives_each_group_its_own(self, numa: Fleet) -> None:
        groups = (RequestGroup("1", NET), RequestGroup("2", NET))
        assert len(ids(numa, SearchRequest(groups, group_policy=GroupPolicy.NONE))) == 4
        assert all(
            len(found) == 2 for found in ids(numa, SearchRequest(groups, group_policy=GroupPolicy.ISOLATE))
        )

    def test_same_subtree_keeps_cpu_and_device_on_one_node(self, numa: Fleet) -> None:
        request = SearchRequest(
            (group("_CPU", VCPU=1), RequestGroup("_NET", NET)), same_subtrees=(frozenset({"_CPU", "_NET"}),)
        )
        assert sorted(sorted(found) for found in ids(numa, request)) == [[2, 4], [3, 5]]

    def test_the_top_of_a_subtree_may_be_chosen_last(self) -> None:
        """Two devices, of which neither is above the other, are fine below the node that holds both."""
        fleet = fleet_of(
            [
                provider(1),
                provider(2, {"VCPU": 4}, parent=1, root=1),
                provider(3, {"VCPU": 4}, parent=1, root=1),
                provider(4, {"SRIOV_NET_VF": 1}, parent=2, root=1),
                provider(5, {"DISK_GB": 1}, parent=2, root=1),
            ]
        )
        groups = (group("_CPU", VCPU=1), RequestGroup("_NET", NET), group("_DISK", DISK_GB=1))
        request = SearchRequest(groups, same_subtrees=(frozenset({"_CPU", "_NET", "_DISK"}),))
        assert [sorted(found) for found in ids(fleet, request)] == [[2, 4, 5]]

    def test_an_old_client_never_sees_two_providers_of_a_tree(self, numa: Fleet) -> None:
        assert ids(numa, SearchRequest((group(VCPU=1, DISK_GB=1),), nested=False)) == []
        result = find_candidates(numa, SearchRequest((group(VCPU=1),), nested=False))
        assert [numa.ids[slot] for slot in result.summarised] == [2, 3]

    def test_the_whole_tree_is_summarised(self, numa: Fleet) -> None:
        result = find_candidates(numa, SearchRequest((group(VCPU=1),), limit=1))
        assert sorted(numa.ids[slot] for slot in result.summarised) == [1, 2, 3, 4, 5]

    def test_any_member_names_the_tree(self, numa: Fleet) -> None:
        for number in (1, 5):
            asked = RequestGroup("", {"DISK_GB": 1}, in_tree=uuid(number))
            assert ids(numa, SearchRequest((asked,))) == [{1: {"DISK_GB": 1}}]
        assert ids(numa, SearchRequest((RequestGroup("", {"DISK_GB": 1}, in_tree=uuid(77)),))) == []


class TestSharing:
    @pytest.fixture
    def cluster(self) -> Fleet:
        """Two hosts without disks, one of them with the shared storage in its aggregate."""
        return fleet_of(
            [
                provider(1, {"VCPU": 4}, aggregates=AGGREGATES[:1]),
                provider(2, {"VCPU": 4}, aggregates=AGGREGATES[1:2]),
                provider(9, {"DISK_GB": 100}, [SHARING], AGGREGATES[:1]),
            ]
        )

    def test_an_aggregate_is_what_connects(self, cluster: Fleet) -> None:
        assert ids(cluster, SearchRequest((group(VCPU=1, DISK_GB=1),))) == [
            {1: {"VCPU": 1}, 9: {"DISK_GB": 1}}
        ]

    def test_what_the_storage_gives_alone_is_one_candidate(self, cluster: Fleet) -> None:
        assert ids(cluster, SearchRequest((group(DISK_GB=1),))) == [{9: {"DISK_GB": 1}}]

    def test_asking_for_a_tree_leaves_sharing_out(self, cluster: Fleet) -> None:
        asked = RequestGroup("", {"VCPU": 1, "DISK_GB": 1}, in_tree=uuid(1))
        assert ids(cluster, SearchRequest((asked,))) == []

    def test_a_hosts_aggregates_do_not_count_for_the_storage(self, cluster: Fleet) -> None:
        cluster.apply([provider(1, {"VCPU": 4}, aggregates=[AGGREGATES[0], AGGREGATES[2]])])
        for aggregate, count in ((AGGREGATES[0], 1), (AGGREGATES[2], 0)):
            asked = RequestGroup("", {"VCPU": 1, "DISK_GB": 1}, member_of=(frozenset({aggregate}),))
            assert len(ids(cluster, SearchRequest((asked,)))) == count

    def test_the_root_traits_are_the_anchors(self, cluster: Fleet) -> None:
        asked = SearchRequest((group(VCPU=1, DISK_GB=1),), root_forbidden=frozenset({SHARING}))
        assert len(ids(cluster, asked)) == 1


class TestOrderAndBounds:
    @pytest.fixture
    def hosts(self) -> Fleet:
        return fleet_of(
            [provider(n, {"VCPU": inventory(10, used=used)}) for n, used in enumerate((5, 1, 9, 3))]
        )

    def order(self, fleet: Fleet, limit: int | None = None, **options: object) -> list[int]:
        found = ids(fleet, SearchRequest((group(VCPU=1),), limit=limit), SearchOptions(**options))  # type: ignore[arg-type]
        return [next(iter(allocation)) for allocation in found]

    def test_spread_prefers_the_emptiest(self, hosts: Fleet) -> None:
        assert self.order(hosts) == [1, 3, 0, 2]

    def test_pack_prefers_the_fullest(self, hosts: Fleet) -> None:
        assert self.order(hosts, order=TreeOrder.PACK) == [2, 0, 3, 1]

    @pytest.mark.parametrize("limit", [1, 2, 3])
    def test_a_limit_keeps_the_best(self, hosts: Fleet, limit: int) -> None:
        assert self.order(hosts, limit) == [1, 3, 0, 2][:limit]

    def test_random_is_repeatable_only_with_a_seed(self, hosts: Fleet) -> None:
        shuffled = {tuple(self.order(hosts, order=TreeOrder.RANDOM, seed=seed)) for seed in range(20)}
        assert len(shuffled) > 5
        assert self.order(hosts, order=TreeOrder.RANDOM, seed=3) == self.order(
            hosts, order=TreeOrder.RANDOM, seed=3
        )

    def test_trees_take_turns_or_come_whole(self) -> None:
        records = [provider(n, {}) for n in (1, 2)]
        records += [provider(n, NET, parent=n // 10, root=n // 10) for n in (11, 12, 21, 22)]
        fleet = fleet_of(records)
        request = SearchRequest((RequestGroup("", NET),))
        turns = ids(fleet, request, SearchOptions(strategy=Strategy.BREADTH_FIRST))
        whole = ids(fleet, request, SearchOptions(strategy=Strategy.DEPTH_FIRST))
        assert [next(iter(found)) for found in turns] == [11, 21, 12, 22]
        assert [next(iter(found)) for found in whole] == [11, 12, 21, 22]

    def test_a_bound_of_ours_is_told_and_a_limit_of_theirs_is_not(self, hosts: Fleet) -> None:
        request = SearchRequest((group(VCPU=1),), limit=2)
        assert not find_candidates(hosts, request).cut_short
        assert find_candidates(
            hosts, SearchRequest((group(VCPU=1),)), SearchOptions(max_candidates=3)
        ).cut_short
        assert not find_candidates(hosts, request, SearchOptions(max_candidates=4)).cut_short

    @pytest.mark.parametrize("policy", list(GroupPolicy))
    def test_eight_groups_of_eight_choices_take_well_under_a_second(self, policy: GroupPolicy) -> None:
        devices = [provider(n, {"SRIOV_NET_VF": 8}, parent=1, root=1) for n in range(2, 10)]
        fleet = fleet_of([provider(1), *devices])
        groups = tuple(RequestGroup(f"_{n}", NET) for n in range(8))
        start = time.thread_time()  # the work, however busy the machine is
        result = find_candidates(fleet, SearchRequest(groups, group_policy=policy))
        assert time.thread_time() - start < 0.9
        assert len(result.candidates) == 10_000
        assert result.cut_short

    def test_a_hopeless_tree_does_not_hide_the_next(self) -> None:
        """Nine pairs need nine devices: the first host has eight, and only trying all ways would show it."""
        records = [provider(1), provider(2)]
        for root, devices in ((1, 8), (2, 9)):
            first = root * 100
            stock = {"SRIOV_NET_VF": 3}
            records += [provider(n, stock, parent=root, root=root) for n in range(first, first + devices)]
        fleet = fleet_of(records)
        groups = (*(group(f"_{n}", SRIOV_NET_VF=2) for n in range(9)), group("_ONE", SRIOV_NET_VF=1))
        options = SearchOptions(TreeOrder.PACK, Strategy.DEPTH_FIRST, max_candidates=100, max_steps=20_000)
        result = find_candidates(fleet, SearchRequest(groups, group_policy=GroupPolicy.NONE), options)
        assert len(result.candidates) == 100
        assert {fleet.ids[fleet.root_of(slot)] for slot in result.summarised} == {2}
        assert result.cut_short

    def test_a_request_that_fits_nowhere_by_a_small_margin_is_seen_at_once(self) -> None:
        devices = [provider(n, {"SRIOV_NET_VF": 3}, parent=1, root=1) for n in range(2, 18)]
        fleet = fleet_of([provider(1), *devices])
        groups = tuple(group(f"_{n}", SRIOV_NET_VF=2) for n in range(17))
        result = find_candidates(fleet, SearchRequest(groups, group_policy=GroupPolicy.NONE))
        assert result.candidates == []
        assert not result.cut_short
