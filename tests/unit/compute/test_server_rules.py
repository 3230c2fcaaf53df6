"""The rules of servers that need no database: names, states, places and quotas."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.compute.errors import ComputeError, QuotaExceeded
from moorage.compute.moves import destinations
from moorage.compute.moves.destinations import Destination
from moorage.compute.quotas.quotas import UNLIMITED
from moorage.compute.quotas.usage import COUNTED, QuotaHeadroom
from moorage.compute.servers import states
from moorage.compute.servers.creation import host_name_from
from moorage.compute.servers.states import TaskState, VmState

UUID = "00000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("name", "hostname"),
    [
        ("web", "web"),
        ("Web Server_1", "web-server-1"),
        ("web.example.org", "web-example-org"),
        ("-web-", "web"),
        ("café", "café"),
        ("サーバー", f"Server-{UUID}"),
        ("!!!", f"Server-{UUID}"),
        ("x" * 100, "x" * 63),
    ],
)
def test_host_names_come_from_names(name: str, hostname: str) -> None:
    assert host_name_from(name, UUID) == hostname


@given(st.text(min_size=1, max_size=255), st.integers(1, 999))
def test_every_name_gives_a_host_name_that_fits(name: str, number: int) -> None:
    found = host_name_from(name, UUID, f"-{number}")
    assert 0 < len(found) <= 255
    assert not re.search(r"[\s/.]", found)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (None, Destination()),
        ("west", Destination("west")),
        ("west:host", Destination("west", "host", forced=True)),
        ("west:host:node", Destination("west", "host", "node", forced=True)),
        ("west::node", Destination("west", None, "node", forced=True)),
        (":host", Destination(None, "host", forced=True)),
        ("west:", Destination("west")),
    ],
)
def test_places(text: str | None, place: Destination) -> None:
    assert destinations.parse(text) == place


def test_a_place_has_three_parts() -> None:
    with pytest.raises(ComputeError, match="Unable to parse"):
        destinations.parse("a:b:c:d")


def test_a_list_by_status_finds_every_server_that_shows_it() -> None:
    for vm_state in VmState:
        for task_state in (None, *TaskState):
            vm_states, task_states = states.states_of([states.status(vm_state, task_state)])
            assert vm_state in vm_states
            assert task_states is None or task_state in task_states


def test_statuses_that_nothing_here_has_find_nothing() -> None:
    assert states.states_of(["UNKNOWN", "nonsense"]) == ([], None)


amounts = st.fixed_dictionaries({name: st.integers(0, 50) for name in COUNTED})
bounds = st.fixed_dictionaries({name: st.one_of(st.just(UNLIMITED), st.integers(0, 100)) for name in COUNTED})
sizes = st.fixed_dictionaries({"instances": st.just(1), "cores": st.integers(0, 9), "ram": st.integers(0, 9)})


@given(bounds, amounts, sizes, st.integers(1, 20), st.integers(0, 20))
def test_a_grant_is_the_largest_that_fits(
    limits: dict[str, int], used: dict[str, int], each: dict[str, int], least: int, more: int
) -> None:
    def fits(count: int) -> bool:
        return all(
            limits[name] == UNLIMITED or each[name] == 0 or used[name] + each[name] * count <= limits[name]
            for name in COUNTED
        )

    most = least + more
    possible = [count for count in range(least, most + 1) if fits(count)]
    room = QuotaHeadroom(limits, used)
    if possible:
        assert room.grant(each, least, most) == max(possible)
    else:
        with pytest.raises(QuotaExceeded, match=r"^Quota exceeded for \w"):
            room.grant(each, least, most)
