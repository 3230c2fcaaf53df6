"""Filters: each objects where it should, says why, and applies only to requests that concern it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from moorage.scheduler.filters.affinity import AffinityFilter
from moorage.scheduler.filters.aggregates import AggregatesFilter
from moorage.scheduler.filters.anti_affinity import AntiAffinityFilter
from moorage.scheduler.filters.contract import Filter, Reason, ReasonKind
from moorage.scheduler.filters.different_host import DifferentHostFilter
from moorage.scheduler.filters.image_properties import ImagePropertiesFilter
from moorage.scheduler.filters.requested_host import RequestedHostFilter
from moorage.scheduler.filters.same_host import SameHostFilter
from moorage.scheduler.filters.server_count import ServerCountFilter
from moorage.scheduler.filters.service import ServiceFilter
from moorage.scheduler.filters.tried import TriedFilter
from moorage.scheduler.hints import with_neighbours
from moorage.scheduler.hosts import HostState
from moorage.scheduler.narrowing import NarrowedBy
from moorage.scheduler.request import Request
from moorage.scheduler.server_group import ServerGroupPolicy, ServerGroupState
from tests.unit.scheduler.clouds import host, request, uuid

KVM = (("x86_64", "kvm", "hvm"), ("i686", "kvm", "hvm"))


def kind(check: Filter, state: HostState, asked: Request) -> ReasonKind | None:
    """What the filter has against the host; one that does not apply has nothing."""
    reason = check.objection(state, asked) if check.applies(asked) else None
    return None if reason is None else reason.kind


def in_group(policy: ServerGroupPolicy, most: int = 1, **members: int) -> Request:
    on = {uuid(int(name.removeprefix("node"))): count for name, count in members.items()}
    return request(server_group=ServerGroupState(uuid(50), policy, most, on))


def test_service() -> None:
    assert kind(ServiceFilter(), host(1), request()) is None
    assert kind(ServiceFilter(), host(1, up=False), request()) is ReasonKind.HOST_DOWN
    assert kind(ServiceFilter(), host(1, disabled=True), request()) is ReasonKind.HOST_DISABLED


def test_server_count() -> None:
    assert kind(ServerCountFilter(3), host(1, servers=2), request()) is None
    assert kind(ServerCountFilter(3), host(1, servers=3), request()) is ReasonKind.TOO_MANY_SERVERS


def test_tried() -> None:
    asked = request(tried_nodes=frozenset({uuid(1)}))
    assert kind(TriedFilter(), host(1), asked) is ReasonKind.ALREADY_TRIED
    assert kind(TriedFilter(), host(2), asked) is None


def test_cells_without_addresses() -> None:
    asked = replace(request(), full_cells=frozenset({"rack-1"}))
    assert kind(TriedFilter(), host(1, cell="rack-1"), asked) is ReasonKind.CELL_FULL
    assert kind(TriedFilter(), host(1, cell="rack-2"), asked) is None


def test_requested_host() -> None:
    assert kind(RequestedHostFilter(), host(1), request(host="host-1")) is None
    assert kind(RequestedHostFilter(), host(2), request(host="host-1")) is ReasonKind.NOT_THE_HOST_ASKED_FOR
    assert kind(RequestedHostFilter(), host(2), request()) is None


def test_affinity_lets_the_first_member_go_anywhere() -> None:
    assert kind(AffinityFilter(), host(1), in_group(ServerGroupPolicy.AFFINITY)) is None
    assert kind(AffinityFilter(), host(1), in_group(ServerGroupPolicy.AFFINITY, node2=0)) is None


def test_affinity_keeps_the_others_with_it() -> None:
    asked = in_group(ServerGroupPolicy.AFFINITY, node2=1)
    assert kind(AffinityFilter(), host(1), asked) is ReasonKind.NOT_WITH_THE_GROUP
    assert kind(AffinityFilter(), host(2), asked) is None


@pytest.mark.parametrize(
    ("most", "held", "passes"), [(1, 0, True), (1, 1, False), (2, 1, True), (2, 2, False)]
)
def test_anti_affinity_lets_a_machine_have_so_many(most: int, held: int, passes: bool) -> None:
    asked = in_group(ServerGroupPolicy.ANTI_AFFINITY, most, node1=held)
    found = kind(AntiAffinityFilter(), host(1), asked)
    assert found is (None if passes else ReasonKind.TOO_MANY_OF_THE_GROUP)


@pytest.mark.parametrize("policy", [ServerGroupPolicy.SOFT_AFFINITY, ServerGroupPolicy.SOFT_ANTI_AFFINITY])
def test_soft_policies_exclude_nobody(policy: ServerGroupPolicy) -> None:
    for node in (1, 2):
        assert kind(AffinityFilter(), host(node), in_group(policy, node1=3)) is None
        assert kind(AntiAffinityFilter(), host(node), in_group(policy, node1=3)) is None


def test_same_host() -> None:
    asked = replace(request(), same_nodes=frozenset({uuid(1)}))
    assert kind(SameHostFilter(), host(1), asked) is None
    assert kind(SameHostFilter(), host(2), asked) is ReasonKind.NOT_THE_SAME_HOST
    assert kind(SameHostFilter(), host(2), request()) is None


def test_different_host() -> None:
    asked = replace(request(), different_nodes=frozenset({uuid(1)}))
    assert kind(DifferentHostFilter(), host(1), asked) is ReasonKind.NOT_A_DIFFERENT_HOST
    assert kind(DifferentHostFilter(), host(2), asked) is None


def test_hints_name_one_server_or_several() -> None:
    nodes = {uuid(11): uuid(1), uuid(12): uuid(2)}
    asked = with_neighbours(request(), {"same_host": uuid(11), "different_host": [uuid(12), uuid(13)]}, nodes)
    assert asked.same_nodes == frozenset({uuid(1)})
    assert asked.different_nodes == {uuid(2)}


def test_a_hint_at_a_server_that_is_nowhere_leaves_no_host() -> None:
    asked = with_neighbours(request(), {"same_host": [uuid(13)]}, {})
    assert kind(SameHostFilter(), host(1), asked) is ReasonKind.NOT_THE_SAME_HOST


@pytest.mark.parametrize(
    ("properties", "passes"),
    [
        ({}, True),
        ({"hw_architecture": "x86_64"}, True),
        ({"hw_architecture": "i686", "img_hv_type": "kvm"}, True),
        ({"hw_architecture": "aarch64"}, False),
        ({"hw_architecture": "x86_64", "img_hv_type": "ironic"}, False),
        ({"hw_vm_mode": "hvm"}, True),
    ],
)
def test_image_properties(properties: dict[str, str], passes: bool) -> None:
    found = kind(ImagePropertiesFilter(), host(1, supported=KVM), request(image_properties=properties))
    assert found is (None if passes else ReasonKind.IMAGE_NOT_SUPPORTED)


def test_a_node_that_does_not_say_what_it_runs_gets_no_image_that_cares() -> None:
    asked = request(image_properties={"hw_architecture": "x86_64"})
    assert kind(ImagePropertiesFilter(), host(1), asked) is ReasonKind.IMAGE_NOT_SUPPORTED


@pytest.mark.parametrize("named", list(ReasonKind))
def test_every_reason_is_a_sentence(named: ReasonKind) -> None:
    said = str(Reason(named, "x86_64", count=2, most=1))
    assert said
    assert "{" not in said
    assert named.of_several
    assert "{" not in named.of_several


def test_a_reason_is_recorded_by_its_name() -> None:
    said = msgspec.json.encode(Reason(ReasonKind.HOST_DOWN))
    assert b'"kind":"host_down"' in said
    assert msgspec.json.decode(said, type=Reason).kind is ReasonKind.HOST_DOWN


def test_aggregates_are_looked_at_again_by_our_own_books() -> None:
    east, closed = frozenset({uuid(101), uuid(102)}), frozenset({uuid(103)})
    asked = request().inside(east, NarrowedBy.ZONE, "east").outside(closed, NarrowedBy.OTHER_PROJECTS)
    check = AggregatesFilter()
    assert not check.applies(request())
    assert kind(check, host(1, aggregates=frozenset({uuid(102), uuid(104)})), asked) is None
    for wrong in (frozenset(), frozenset({uuid(104)}), frozenset({uuid(101), uuid(103)})):
        assert kind(check, host(1, aggregates=wrong), asked) is ReasonKind.AGGREGATES_CHANGED
