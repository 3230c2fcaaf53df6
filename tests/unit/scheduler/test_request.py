"""From flavors and their extra specs to request groups and queries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moorage.scheduler import own_aggregate
from moorage.scheduler.criteria import ImageNeeds
from moorage.scheduler.errors import BadExtraSpecError, SchedulingError
from moorage.scheduler.request import MOST_TREES, TargetNodes, from_flavor
from moorage.scheduler.server_group import ServerGroupPolicy, ServerGroupState
from tests.unit.scheduler.clouds import flavor, request, uuid


def query(**specs: str) -> list[tuple[str, str]]:
    named = {key.replace("__", ":"): value for key, value in specs.items()}
    return from_flavor(uuid(1), {**flavor(), "extra_specs": named}).queries(50)[0]


def test_a_plain_flavor_asks_for_its_numbers() -> None:
    assert query() == [("limit", "50"), ("resources", "DISK_GB:20,MEMORY_MB:2048,VCPU:2")]


@pytest.mark.parametrize(("swap", "disk"), [(0, 25), (1, 26), (1024, 26), (1025, 27)])
def test_disk_counts_ephemeral_and_swap_in_whole_gigabytes(swap: int, disk: int) -> None:
    asked = from_flavor(uuid(1), {**flavor(), "ephemeral": 5, "swap": swap})
    assert asked.groups[0].resources["DISK_GB"] == disk


def test_a_root_disk_on_a_volume_takes_none_of_the_node() -> None:
    asked = from_flavor(uuid(1), flavor(), root_on_volume=True)
    assert "DISK_GB" not in asked.groups[0].resources


def test_resources_replace_the_numbers_and_zero_removes_them() -> None:
    asked = query(
        resources__VCPU="0", resources__MEMORY_MB="0", resources__DISK_GB="0", resources__CUSTOM_BM="1"
    )
    assert asked[1:] == [("resources", "CUSTOM_BM:1")]
    assert ("resources", "DISK_GB:20,MEMORY_MB:2048,VCPU:8") in query(resources__VCPU="8")


def test_dedicated_processors_stand_in_for_shared_ones() -> None:
    assert query(resources__PCPU="2")[1:] == [
        ("resources", "DISK_GB:20,MEMORY_MB:2048"),
        ("resources_cell0", "PCPU:2"),
    ]


def test_numbered_groups_and_traits() -> None:
    asked = query(
        trait__HW_CPU_X86_AVX2="required",
        trait__CUSTOM_OLD="forbidden",
        resources1__VGPU="1",
        trait1__CUSTOM_FAST="required",
        resources_NIC__SRIOV_NET_VF="2",
        group_policy="isolate",
    )
    assert asked[1:] == [
        ("resources", "DISK_GB:20,MEMORY_MB:2048,VCPU:2"),
        ("required", "HW_CPU_X86_AVX2,!CUSTOM_OLD"),
        ("resources1", "VGPU:1"),
        ("required1", "CUSTOM_FAST"),
        ("resources_NIC", "SRIOV_NET_VF:2"),
        ("group_policy", "isolate"),
    ]


def test_a_class_in_a_numbered_group_is_not_asked_for_again() -> None:
    assert query(resources1__VCPU="2")[1:] == [
        ("resources", "DISK_GB:20,MEMORY_MB:2048"),
        ("resources1", "VCPU:2"),
    ]


def test_other_extra_specs_are_left_alone() -> None:
    assert query(hw__numa_nodes="1", quota__cpu_shares="2") == query()


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        ({"resources__VCPU": "two"}, "'resources:VCPU' must be a whole number of 0 or more, not 'two'"),
        ({"resources__VCPU": "-1"}, "must be a whole number"),
        ({"resources__vcpu": "1"}, "names something that is no resource class or trait"),
        ({"trait__CUSTOM_A": "maybe"}, "must be 'required' or 'forbidden', not 'maybe'"),
        ({"trait1__CUSTOM_A": "required"}, "'trait1:CUSTOM_A' is about a group that asks for no resources"),
        ({"resources1__VGPU": "1", "resources2__VGPU": "1"}, "'group_policy' is missing"),
        ({"group_policy": "strict"}, "must be 'none' or 'isolate', not 'strict'"),
    ],
)
def test_extra_specs_that_make_no_sense_are_told_in_a_sentence(specs: dict[str, str], words: str) -> None:
    with pytest.raises(BadExtraSpecError) as caught:
        query(**specs)
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_flavor_that_asks_for_nothing_is_refused() -> None:
    with pytest.raises(SchedulingError, match="no resources at all"):
        query(resources__VCPU="0", resources__MEMORY_MB="0", resources__DISK_GB="0")


def test_image_needs_know_older_names_and_spellings() -> None:
    assert ImageNeeds.of({"architecture": "AMD64", "vm_mode": "hv"}) == ImageNeeds("x86_64", "", "hvm")
    assert ImageNeeds.of({"hw_architecture": "aarch64", "architecture": "i386"}).architecture == "aarch64"
    assert not ImageNeeds.of({"hw_disk_bus": "virtio"})


def test_one_certain_node_is_asked_for_by_name() -> None:
    group = ServerGroupState(uuid(5), ServerGroupPolicy.AFFINITY, members={uuid(7): 2, uuid(8): 0})
    assert ("in_tree", uuid(7)) in request(server_group=group).queries(50)[0]
    assert ("in_tree", uuid(9)) in replace(request(), same_nodes=frozenset({uuid(9)})).queries(50)[0]


def test_several_certain_nodes_are_as_many_questions() -> None:
    asked = replace(request(), same_nodes=frozenset({uuid(8), uuid(9)})).queries(50)
    assert [dict(query)["in_tree"] for query in asked] == [uuid(8), uuid(9)]
    assert all(dict(query)["limit"] == "50" for query in asked)


def test_a_host_of_very_many_nodes_is_asked_for_a_bounded_number_of_them() -> None:
    targets = tuple(uuid(number) for number in range(2000))
    asked = replace(request(), targets=TargetNodes(targets), tried_nodes=frozenset({uuid(0)})).queries(50)
    assert [dict(query)["in_tree"] for query in asked] == list(targets[1 : MOST_TREES + 1])


def test_a_host_of_very_many_nodes_that_placement_knows_to_be_its_own_is_one_question() -> None:
    targets = TargetNodes((uuid(3), uuid(4)), together=uuid(9))
    asked = replace(request(), host="metal-1", targets=targets, tried_nodes=frozenset({uuid(3), uuid(8)}))
    together, alone = map(dict, asked.queries(50))
    assert (together["member_of"], together["limit"]) == (f"in:{own_aggregate.of_host('metal-1')}", "52")
    assert "in_tree" not in together
    assert (alone["in_tree"], alone["limit"]) == (uuid(4), "50")
    beside = replace(asked, same_nodes=frozenset({uuid(9)})).queries(50)
    assert [dict(query)["in_tree"] for query in beside] == [uuid(9)]


def test_the_tree_is_asked_for_in_every_group_where_none_is_unsuffixed() -> None:
    specs = {f"resources:{name}": "0" for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
    bare = from_flavor(
        uuid(1),
        flavor(**specs, **{"resources_A:CUSTOM_A": "1", "resources_B:CUSTOM_B": "1", "group_policy": "none"}),
    )
    (asked,) = replace(bare, targets=TargetNodes((uuid(7),))).queries(50)
    assert ("in_tree_A", uuid(7)) in asked
    assert ("in_tree_B", uuid(7)) in asked


def test_nodes_out_of_the_question_do_not_use_up_the_limit() -> None:
    group = ServerGroupState(uuid(5), ServerGroupPolicy.ANTI_AFFINITY, members={uuid(7): 1, uuid(8): 1})
    asked = replace(
        request(server_group=group), different_nodes=frozenset({uuid(8)}), tried_nodes=frozenset({uuid(9)})
    )
    assert asked.queries(50)[0][0] == ("limit", "53")
