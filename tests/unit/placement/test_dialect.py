"""Queries for older services: no version is asked for more than it knows, and nothing asked is lost."""

from __future__ import annotations

import pytest

from moorage.core.microversions import Version
from moorage.placement.client.contract import MICROVERSION, AllocationRequest, Candidates, ProviderSummary
from moorage.placement.client.dialect import OLDEST, CandidatesQuery, missing

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"
QUERY = [
    ("limit", "2"),
    ("root_required", "HW_CPU_X86_AVX2,!COMPUTE_STATUS_DISABLED"),
    ("resources", "VCPU:1"),
    ("member_of", f"in:{A},{B}"),
    ("member_of", f"!in:{B}"),
    ("in_tree", "one"),
    ("resources2", "CUSTOM_NIC:1"),
    ("resources_GPU", "VGPU:1"),
    ("required_GPU", "CUSTOM_FAST"),
    ("group_policy", "none"),
]
VERSIONS = [(1, minor) for minor in range(OLDEST[1], MICROVERSION[1] + 1)]


@pytest.mark.parametrize("version", VERSIONS)
def test_no_version_is_asked_for_more_than_it_knows(version: Version) -> None:
    pairs = CandidatesQuery.of(QUERY, version).pairs()
    names = [name for name, _ in pairs]
    assert ("in_tree" in names) == (version >= (1, 31))
    assert any(value.startswith("!in:") for _, value in pairs) == (version >= (1, 32))
    assert ("resources_GPU" in names) == (version >= (1, 33))
    assert ("root_required" in names) == (version >= (1, 35))
    assert ("member_of", f"in:{A},{B}") in pairs


def test_the_newest_version_is_asked_as_it_is() -> None:
    assert CandidatesQuery.of(QUERY, MICROVERSION).pairs() == QUERY
    assert missing(MICROVERSION) == []


def test_named_groups_get_numbers_that_nobody_has() -> None:
    pairs = CandidatesQuery.of(QUERY, (1, 32)).pairs()
    assert ("resources2", "CUSTOM_NIC:1") in pairs
    assert ("resources1", "VGPU:1") in pairs
    assert ("required1", "CUSTOM_FAST") in pairs


def node(number: int, *traits: str) -> tuple[str, ProviderSummary]:
    return f"node-{number}", ProviderSummary({}, list(traits), None, f"node-{number}")


def found(*nodes: tuple[str, ProviderSummary]) -> Candidates:
    requests = [AllocationRequest({uuid: {"resources": {"VCPU": 1}}}) for uuid, _ in nodes]
    return Candidates(requests, dict(nodes))


def uuids(candidates: Candidates) -> list[str]:
    return [uuid for request in candidates.allocation_requests for uuid in request.allocations]


def test_what_the_service_can_not_check_is_checked_here() -> None:
    simple = [("limit", "5"), ("resources", "VCPU:1")]
    answer = found(node(1), node(2, "COMPUTE_STATUS_DISABLED"), node(3, "CUSTOM_GOLD"))
    root = CandidatesQuery.of([*simple, ("root_required", "!COMPUTE_STATUS_DISABLED")], OLDEST)
    assert uuids(root.kept(answer, frozenset())) == ["node-1", "node-3"]
    gold = CandidatesQuery.of([*simple, ("root_required", "CUSTOM_GOLD")], OLDEST)
    assert uuids(gold.kept(answer, frozenset())) == ["node-3"]
    tree = CandidatesQuery.of([*simple, ("in_tree", "node-2")], OLDEST)
    assert uuids(tree.kept(answer, frozenset())) == ["node-2"]
    apart = CandidatesQuery.of([*simple, ("member_of", f"!in:{A}")], OLDEST)
    assert apart.outside == {A}
    assert uuids(apart.kept(answer, frozenset({"node-1"}))) == ["node-2", "node-3"]


def test_more_are_asked_for_only_if_it_may_help() -> None:
    question = CandidatesQuery.of([("limit", "2"), ("resources", "VCPU:1"), ("in_tree", "node-9")], OLDEST)
    wider = question.wider(received=2, kept=0)
    assert wider is not None
    assert dict(wider.pairs())["limit"] == "16"
    assert wider.wider(received=15, kept=1) is None, "there are no more"
    assert question.wider(received=2, kept=2) is None, "there are enough"
    assert CandidatesQuery.of([("resources", "VCPU:1")], OLDEST).wider(100, 0) is None, "all were asked for"


def test_groups_are_mapped_if_no_two_ask_for_the_same() -> None:
    request = AllocationRequest({"n": {"resources": {"VCPU": 1}}, "g": {"resources": {"VGPU": 1}}})
    summaries = {uuid: ProviderSummary({}, [], None, "n") for uuid in ("n", "g")}
    query = [("limit", "1"), ("resources", "VCPU:1"), ("resources_GPU", "VGPU:1")]
    (mapped,) = (
        CandidatesQuery.of(query, OLDEST)
        .kept(Candidates([request], summaries), frozenset())
        .allocation_requests
    )
    assert mapped.mappings == {"": ["n"], "_GPU": ["g"]}
    same = [("limit", "1"), ("resources1", "VGPU:1"), ("resources2", "VGPU:1")]
    (unknown,) = (
        CandidatesQuery.of(same, OLDEST)
        .kept(Candidates([request], summaries), frozenset())
        .allocation_requests
    )
    assert unknown.mappings == {}
