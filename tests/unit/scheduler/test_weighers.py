"""Weighers: each prefers what it should; their opinions are comparable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.scheduler.offers import Offer
from moorage.scheduler.option import HostOption
from moorage.scheduler.request import Request
from moorage.scheduler.server_group import ServerGroupPolicy, ServerGroupState
from moorage.scheduler.weighers.build_failures import BuildFailureWeigher
from moorage.scheduler.weighers.contract import Weigher, shares
from moorage.scheduler.weighers.cpu import CpuWeigher
from moorage.scheduler.weighers.disk import DiskWeigher
from moorage.scheduler.weighers.failed_host import FailedHostWeigher
from moorage.scheduler.weighers.pool import PoolWeigher
from moorage.scheduler.weighers.ram import RamWeigher
from moorage.scheduler.weighers.server_count import ServerCountWeigher
from moorage.scheduler.weighers.soft_affinity import SoftAffinityWeigher
from moorage.scheduler.weighers.soft_anti_affinity import SoftAntiAffinityWeigher
from tests.unit.scheduler.clouds import Node, candidates, host, request, uuid


def option(number: int, state: dict[str, Any] | None = None, **free: int) -> HostOption:
    node = Node(host(number, **(state or {})))
    way = candidates([node]).allocation_requests[0]
    return HostOption(node.state, Offer(node.state.node_uuid, [way], dict(free)), way)


def given_by(weigher: Weigher, options: list[HostOption], asked: Request | None = None) -> list[float]:
    raw = [weigher.weigh(option, asked or request()) for option in options]
    return [float(share) for share in shares(weigher, np.array(raw, float))]


@pytest.mark.parametrize(
    ("weigher", "name"),
    [
        (CpuWeigher(1.0), "VCPU"),
        (CpuWeigher(1.0), "PCPU"),
        (RamWeigher(1.0), "MEMORY_MB"),
        (DiskWeigher(1.0), "DISK_GB"),
    ],
)
def test_more_free_is_better_in_proportion_to_the_most(weigher: Weigher, name: str) -> None:
    little: dict[str, Any] = {name: 10}
    more: dict[str, Any] = {name: 20}
    options = [option(1, **little), option(2, **more), option(3)]
    assert given_by(weigher, options) == [0.5, 1.0, 0.0]


def test_what_the_pass_took_is_no_longer_free() -> None:
    options = [option(1, {"taken": {"VCPU": 8}}, VCPU=10), option(2, VCPU=4)]
    assert given_by(CpuWeigher(1.0), options) == [0.5, 1.0]


def test_a_host_that_failed_the_server_comes_after_all_others() -> None:
    weigher = FailedHostWeigher()
    options = [option(1), option(2), option(3)]
    assert not weigher.applies(request())
    asked = replace(request(), failed_hosts=frozenset({"host-2"}))
    assert weigher.applies(asked)
    assert given_by(weigher, options, asked) == [1e9, 0.0, 1e9]


def test_of_pools_those_with_fewer_servers_come_first_and_other_hosts_don_t_care() -> None:
    pools = [option(number, {"pool": True, "servers": number}) for number in (1, 2, 3)]
    assert given_by(PoolWeigher(1.0), pools) == [1.0, 0.5, 0.0]
    hosts = [option(number, {"servers": number}) for number in (1, 2, 3)]
    assert given_by(PoolWeigher(1.0), hosts) == [0.0, 0.0, 0.0]
    assert not PoolWeigher(1.0).applies(request()), "who asks for processors gets no machine"


def test_a_negative_multiplier_packs() -> None:
    options = [option(1, VCPU=10), option(2, VCPU=20)]
    first, second = given_by(CpuWeigher(-1.0), options)
    assert first > second


def test_server_count_prefers_fewer_if_it_is_negative() -> None:
    options = [option(1, {"servers": 5}), option(2, {"servers": 1}), option(3, {"servers": 3})]
    assert given_by(ServerCountWeigher(-1.0), options) == [-1.0, 0.0, -0.5]


def test_build_failures_outweigh_everything_else() -> None:
    options = [option(1, {"build_failures": 2}), option(2)]
    assert given_by(BuildFailureWeigher(1_000_000.0), options) == [0.0, 1_000_000.0]


def test_soft_affinity_prefers_members_and_soft_anti_affinity_avoids_them() -> None:
    options = [option(1), option(2)]
    together = request(
        server_group=ServerGroupState(uuid(5), ServerGroupPolicy.SOFT_AFFINITY, members={uuid(1): 2})
    )
    apart = request(
        server_group=ServerGroupState(uuid(5), ServerGroupPolicy.SOFT_ANTI_AFFINITY, members={uuid(1): 2})
    )
    assert given_by(SoftAffinityWeigher(1.0), options, together) == [1.0, 0.0]
    assert given_by(SoftAntiAffinityWeigher(1.0), options, apart) == [0.0, 1.0]
    assert not SoftAffinityWeigher(1.0).applies(apart)
    assert not SoftAntiAffinityWeigher(1.0).applies(together)
    assert not SoftAffinityWeigher(1.0).applies(request())


def test_equals_get_nothing() -> None:
    assert given_by(ServerCountWeigher(5.0), [option(1), option(2)]) == [0.0, 0.0]


amounts = st.lists(st.integers(0, 10**6), min_size=1, max_size=20)


@given(amounts, st.floats(-10, 10).filter(bool))
def test_shares_lie_between_zero_and_the_multiplier(free: list[int], multiplier: float) -> None:
    options = [option(number, VCPU=amount) for number, amount in enumerate(free)]
    low, high = sorted((0.0, multiplier))
    assert all(low - 1e-9 <= share <= high + 1e-9 for share in given_by(CpuWeigher(multiplier), options))


@given(amounts)
def test_more_free_is_never_worse(free: list[int]) -> None:
    options = [option(number, VCPU=amount) for number, amount in enumerate(free)]
    given_shares = given_by(CpuWeigher(1.0), options)
    ordered = sorted(zip(free, given_shares, strict=True))
    assert [share for _, share in ordered] == sorted(given_shares)
