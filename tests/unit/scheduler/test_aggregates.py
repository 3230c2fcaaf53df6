"""The metadata of aggregates, sorted out into what it means for scheduling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from moorage.scheduler.aggregates import AggregateFacts


@dataclass(frozen=True)
class Group:
    uuid: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    name: str = "group"


def facts(*groups: Group) -> AggregateFacts:
    return AggregateFacts.of(groups)


def test_zones_are_aggregates_and_their_hosts() -> None:
    found = facts(
        Group("a", {"availability_zone": "east"}, ("h1",)),
        Group("b", {"availability_zone": "east"}, ("h2",)),
        Group("c", {"ssd": "true"}, ("h1", "h3")),
    )
    assert found.zones == {"east": frozenset({"a", "b"})}
    assert found.zone_of == {"h1": "east", "h2": "east"}
    assert found.of_host == {"h1": {"a", "c"}, "h2": {"b"}, "h3": {"c"}}


def test_projects_may_be_listed_and_keys_may_go_on() -> None:
    found = facts(Group("a", {"filter_tenant_id": "p1, p2", "filter_tenant_id3": "p3"}), Group("b"))
    assert found.projects == dict.fromkeys(("p1", "p2", "p3"), frozenset({"a"}))
    assert found.images == {}


def test_only_required_traits_isolate() -> None:
    found = facts(Group("a", {"trait:CUSTOM_A": "required", "trait:CUSTOM_B": "forbidden"}))
    assert found.traits == {"a": frozenset({"CUSTOM_A"})}


def test_what_is_left_may_be_about_images() -> None:
    found = facts(
        Group("a", {"os_distro": "debian,ubuntu", "availability_zone": "x", "cpu_allocation_ratio": "2"})
    )
    assert found.images == {"a": {"os_distro": frozenset({"debian", "ubuntu"})}}


def test_the_lowest_ratio_wins_for_each_class() -> None:
    found = facts(
        Group("a", {"cpu_allocation_ratio": "4", "ram_allocation_ratio": "1.5"}, ("h1", "h2")),
        Group("b", {"cpu_allocation_ratio": "2.5", "disk_allocation_ratio": "0.5"}, ("h1",)),
    )
    assert found.ratios == {
        "h1": {"VCPU": 2.5, "MEMORY_MB": 1.5, "DISK_GB": 0.5},
        "h2": {"VCPU": 4.0, "MEMORY_MB": 1.5},
    }


@pytest.mark.parametrize("text", ["0", "-1", "many", "", "nan", "inf"])
def test_a_ratio_that_makes_no_sense_is_left_out_and_told(text: str) -> None:
    found = facts(Group("a", {"cpu_allocation_ratio": text, "ram_allocation_ratio": "2"}, ("h1",)))
    assert found.ratios == {"h1": {"MEMORY_MB": 2.0}}
    (problem,) = found.problems
    assert f"cpu_allocation_ratio must be a number above 0, not '{text}'" in problem
