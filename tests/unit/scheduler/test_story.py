"""Traces told to people: one sentence for users, a story for operators."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.placement.search.checks import ConditionKind as Condition
from moorage.scheduler.filters.contract import ReasonKind
from moorage.scheduler.narrowing import NarrowedBy, Narrowing
from moorage.scheduler.select import Selector
from moorage.scheduler.settings import SchedulerSettings
from moorage.scheduler.story import condition, sentence, story
from moorage.scheduler.trace import Attempt, Emptiness, Exclusion, NearMiss, Place, Trace
from tests.unit.scheduler.clouds import Node, cloud, host, request, uuid

HERE = Place("host-1", "host-1", uuid(1))
WHY = {
    "total": {"trees": 12, "providers": 30},
    "trees_left": 0,
    "excludes_most": {
        "kind": "room",
        "group": "",
        "subject": "VCPU:8",
        "excludes_alone": {"trees": 12, "providers": 12},
    },
    "near_misses": [
        {"uuid": uuid(3), "name": "host-3", "failures": [{"sentence": "VCPU: needs 8, free 6 of 32"}]}
    ],
}


def test_nothing_offered_names_the_condition_that_excludes_most() -> None:
    trace = Trace(uuid(1), [], why=Emptiness.of(WHY))
    assert sentence(trace) == "No valid host was found: 12 of 12 hosts don't have 8 VCPU free."


def test_nothing_offered_for_several_reasons() -> None:
    why = Emptiness(12, 0, kind="required_traits", subject="CUSTOM_GOLD", excluded=9)
    assert sentence(Trace(uuid(1), [], why=why)) == (
        "No valid host was found: 9 of 12 hosts don't have what is required (CUSTOM_GOLD), "
        "and the others lack something else."
    )


def test_an_empty_cloud_is_told_as_such() -> None:
    assert sentence(Trace(uuid(1), [], why=Emptiness(0, 0))) == "No valid host was found: there are no hosts."


def test_a_placement_that_can_not_tell() -> None:
    assert sentence(Trace(uuid(1), [])) == ("No valid host was found: none has all that the server asks for.")


def test_all_offered_excluded_counts_the_reasons_most_first() -> None:
    found, board = cloud([Node(host(1, up=False)), Node(host(2, up=False)), Node(host(3, disabled=True))])
    trace = Selector(SchedulerSettings()).select(request(), found, board).trace
    assert sentence(trace) == (
        "No valid host was found: of 3 hosts with enough room, 2 are down and 1 is disabled."
    )


def test_attempts_without_success_tell_the_last_reason() -> None:
    other = Place("host-2", "host-2", uuid(2))
    attempts = [
        Attempt(HERE, "spawn", "failed", "no power"),
        Attempt(other, "spawn", "failed", "disk is full"),
    ]
    assert sentence(Trace(uuid(1), [], attempts=attempts)) == (
        "No valid host was found: 2 hosts were tried, without success (disk is full)."
    )


def test_claims_that_were_all_refused_name_no_providers() -> None:
    refused = Attempt(HERE, "claim", "refused", f"no room on provider {uuid(1)}")
    assert sentence(Trace(uuid(1), [], attempts=[refused])) == (
        "No valid host was found: 1 host was tried, but other servers took the room first."
    )


def test_a_problem_of_the_request_itself() -> None:
    trace = Trace(uuid(1), [], problem="Availability zone 'north' has no hosts.")
    assert sentence(trace) == "No valid host was found: Availability zone 'north' has no hosts."
    assert "Availability zone 'north' has no hosts." in story(trace)


def test_users_are_not_told_the_names_of_hosts() -> None:
    trace = Trace(uuid(1), [], nodes=1, excluded=[Exclusion("service", 1, [], {ReasonKind.HOST_DOWN: 1})])
    assert "host-" not in sentence(trace)


def test_the_story_of_a_placed_server() -> None:
    states = [host(1, up=False), host(2), host(3)]
    found, board = cloud([Node(states[0]), Node(states[1], vcpus=32), Node(states[2], vcpus=16)])
    trace = Selector(SchedulerSettings()).select(request(7), found, board, request(7).queries(50)[0]).trace
    trace.attempts = [
        Attempt(Place("host-2", "host-2", uuid(2)), "spawn", "failed", "disk is full"),
        Attempt(Place("host-3", "host-3", uuid(3)), "spawn", "done"),
    ]
    assert story(trace).splitlines() == [
        f"Server {uuid(7)}",
        "Asked Placement for:",
        "  limit = 50",
        "  resources = DISK_GB:20,MEMORY_MB:2048,VCPU:2",
        "Placement offered 3 candidates on 3 nodes.",
        "Filter 'service' excluded 1:",
        "  host-1: its compute service is down",
        "2 hosts left, best first:",
        "  1. host-2: 3.000 (cpu +1, ram +1, disk +1)",
        "  2. host-3: 2.500 (cpu +0.5, ram +1, disk +1)",
        "Chosen: host-2, with host-3 in reserve.",
        "Try 1, host-2: spawn failed (disk is full)",
        "Try 2, host-3: spawn done",
    ]


def test_the_story_of_nothing_found() -> None:
    told = story(Trace(uuid(1), [("resources", "VCPU:8")], why=Emptiness.of(WHY))).splitlines()
    assert told[3:] == [
        "Placement offered 0 candidates on 0 nodes.",
        "Of 12 trees of providers, 0 can serve this.",
        "What excludes most: 12 don't have 8 VCPU free.",
        "Nearest misses:",
        "  host-3: VCPU: needs 8, free 6 of 32",
        "No valid host was found: 12 of 12 hosts don't have 8 VCPU free.",
    ]


def test_a_node_of_a_host_with_many_is_told_with_its_host() -> None:
    assert str(Place("ironic-1", "rack-4-u7", uuid(1))) == "rack-4-u7 of host ironic-1"


def test_a_trace_survives_being_kept_as_json() -> None:
    found, board = cloud([Node(host(1, up=False)), Node(host(2))])
    trace = Selector(SchedulerSettings()).select(request(), found, board, request().queries(50)[0]).trace
    trace.why = Emptiness(2, 1, nearest=[NearMiss("host-1", ["full"])])
    trace.attempts = [Attempt(HERE, "claim", "refused", "full")]
    kept = msgspec.json.decode(msgspec.json.encode(trace), type=Trace)
    assert kept == trace
    assert msgspec.convert(msgspec.to_builtins(trace), Trace) == trace
    assert story(kept) == story(trace)


@pytest.mark.parametrize("kind", [kind for kind in Condition if kind is not Condition.NOTHING_ASKED])
def test_every_condition_of_placement_has_words(kind: Condition) -> None:
    said = condition(kind, "VCPU:8")
    assert "{" not in said
    assert said.split()[0] in ("don't", "have", "are")


def counted(kind: str, subject: str, excluded: int, left: int) -> dict[str, Any]:
    """A condition as Placement tells of it."""
    alone = {"trees": excluded, "providers": excluded}
    return {"kind": kind, "subject": subject, "excludes_alone": alone, "left": {"trees": left}}


EAST = Narrowing(NarrowedBy.ZONE, f"in:{uuid(9)}", "east", excluded=30)


def test_a_zone_that_has_no_room_is_told_by_what_its_hosts_lack() -> None:
    conditions = [
        counted("root_forbidden", "COMPUTE_STATUS_DISABLED", 1, 39),
        counted("member_of", uuid(9), 30, 9),
        counted("room", "VCPU:8", 20, 3),
        counted("required_traits", "CUSTOM_GOLD", 10, 0),
    ]
    why = {"total": {"trees": 40}, "trees_left": 0, "excludes_most": conditions[1], "conditions": conditions}
    trace = Trace(uuid(1), [], [EAST], why=Emptiness.of(why))
    assert sentence(trace) == (
        "No valid host was found: 6 of 9 hosts in the availability zone 'east' don't have 8 VCPU free, "
        "and the others lack something else."
    )
    assert "Excluded by the availability zone 'east': 30 providers." in story(trace).splitlines()


def test_a_zone_whose_hosts_are_all_gone_is_told_as_such() -> None:
    conditions = [counted("member_of", uuid(9), 40, 0), counted("room", "VCPU:8", 20, 0)]
    why = {"total": {"trees": 40}, "trees_left": 0, "excludes_most": conditions[0], "conditions": conditions}
    assert sentence(Trace(uuid(1), [], [EAST], why=Emptiness.of(why))) == (
        "No valid host was found: 40 of 40 hosts are not in the availability zone 'east'."
    )


def test_hosts_that_several_prefilters_leave_are_those_that_it_may_go_to() -> None:
    conditions = [counted("forbidden_aggregates", uuid(9), 30, 10), counted("room", "VCPU:8", 40, 0)]
    why = {"total": {"trees": 40}, "trees_left": 0, "excludes_most": conditions[1], "conditions": conditions}
    closed = [
        Narrowing(NarrowedBy.OTHER_PROJECTS, f"!in:{uuid(9)}"),
        Narrowing(NarrowedBy.TRAITS, f"!in:{uuid(9)}", "X"),
    ]
    assert sentence(Trace(uuid(1), [], closed, why=Emptiness.of(why))) == (
        "No valid host was found: 10 of 10 hosts that it may go to don't have 8 VCPU free."
    )
