"""A conductor stalls before any of its calls, its successor goes on, then it wakes up: no harm is done.

What the server holds in Placement and what it has from the pool must be its successor's doing alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count

import pytest

from moorage.compute.servers.states import VmState
from moorage.core.clock import utcnow
from tests.functional.conductor.stall import Stall, lose_leases
from tests.functional.conductor.stand import Stand

Prepare = Callable[[Stand], object]
_MOST_CALLS = 40


@pytest.fixture
def stall() -> Stall:
    return Stall()


@pytest.fixture
def stand(database_url: str, stall: Stall) -> Iterator[Stand]:
    made = Stand(database_url, stall)
    yield made
    made.close()


def nothing_special(stand: Stand) -> None:
    pass


def a_host_failed(stand: Stand) -> None:
    """The server is about to leave it for the next one."""
    stand.work("first")
    assert stand.operation().step == "spawned"
    stand.set_operation(step="reschedule", due_at=utcnow())


def a_conductor_died(stand: Stand) -> None:
    """It had claimed, but came to no checkpoint."""
    stand.claim_elsewhere()
    stand.set_operation(lease="dead", leased_until=utcnow() - timedelta(seconds=1))


def a_conductor_died_with_the_last_room(stand: Stand) -> None:
    stand.fill(stand.nodes[0])
    a_conductor_died(stand)


def a_host_failed_for_good(stand: Stand) -> None:
    a_host_failed(stand)
    stand.set_operation(data={**stand.operation().data, "last_error": "it burnt down"})


def stall_everywhere(
    stand: Stand, stall: Stall, prepare: Prepare, between: Prepare = nothing_special
) -> Iterator[int]:
    """Yields when a conductor has stalled before its first, second, … call, and is awake and done again."""
    for number in count(1):
        assert number < _MOST_CALLS
        stand.start_over()
        prepare(stand)

        def successor() -> None:
            lose_leases(stand.runner, stand.database)
            between(stand)
            while stand.work("successor"):
                pass

        stall.come(number, successor)
        stand.work("late")
        while stand.work("whoever comes next"):
            pass
        if not stall.came:
            assert number > 2, "nothing was called"
            return
        yield number


@pytest.mark.parametrize(
    "prepare", [nothing_special, a_host_failed, a_conductor_died, a_conductor_died_with_the_last_room]
)
def test_a_server_that_goes_on_keeps_what_its_successor_got(
    stand: Stand, stall: Stall, prepare: Prepare
) -> None:
    for number in stall_everywhere(stand, stall, prepare):
        server = stand.server()
        assert stand.operation().step == "spawned", number
        assert stand.held() == {server.node_uuid}, number
        (shown,) = [one["addr"] for one in server.addresses["private"]]
        assert stand.addresses() == {shown}, number


def test_who_saw_no_room_takes_nothing_from_who_found_some(stand: Stand, stall: Stall) -> None:
    strangers: list[str] = []

    def no_room(stand: Stand) -> None:
        strangers[:] = [stand.fill(node) for node in stand.nodes]

    def room(stand: Stand) -> None:
        stand.placement.release(strangers[:1])

    outcomes = []
    for number in stall_everywhere(stand, stall, no_room, between=room):
        server = stand.server()
        outcomes.append(server.vm_state)
        assert stand.held() == {server.node_uuid} - {None}, number
        assert len(stand.addresses()) == len(stand.held()), number
    assert outcomes[0] == VmState.BUILDING.value
    assert outcomes[-1] == VmState.ERROR.value  # once that is written down, room comes too late


def test_a_server_that_is_deleted_meanwhile_leaves_nothing(stand: Stand, stall: Stall) -> None:
    for number in stall_everywhere(stand, stall, nothing_special, between=Stand.delete):
        assert stand.server().deleted_at is not None, number
        assert stand.held() == stand.addresses() == set(), number


def test_a_build_that_fails_leaves_nothing(stand: Stand, stall: Stall) -> None:
    for number in stall_everywhere(stand, stall, a_host_failed_for_good):
        assert stand.server().vm_state == VmState.ERROR.value, number
        assert stand.server().fault["message"] == "it burnt down"
        assert stand.held() == stand.addresses() == set(), number
