"""Rebalances: the few moves that win the most are proposed, as the scheduler would have them, and made."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from moorage.compute.drains import advancing
from moorage.deciding import rebalancer
from tests.functional.conductor.conftest import Make
from tests.functional.conductor.harbour import Harbour
from tests.functional.conductor.test_draining import ABSENT, ended, service_of, show, states
from tests.functional.conductor.test_draining import ask as ask_drains
from tests.functional.conductor.test_draining import only_on as is_only_on
from tests.support.processes import wait_until

HOSTS = ("fake-1", "fake-2", "fake-3")


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advancing, "RETRY_PAUSE", timedelta(seconds=0.2))


def ask(place: Harbour, path: str, body: Any, status: int) -> Any:
    reply = place.cloud.api.simulate_post(f"/v2.1/moorage-rebalances{path}", json={"rebalance": body})
    assert reply.status_code == status, reply.text
    return reply.json


def propose(place: Harbour, **fields: Any) -> Any:
    return ask(place, "/plan", fields, 200)["rebalance"]


def only_on(place: Harbour, host: str, count: int, **fields: Any) -> list[str]:
    """Servers that nobody has asked to be there: the other hosts were closed while they were made."""
    for other in HOSTS:
        place.set_service(other, status="enabled" if other == host else "disabled")
    uuids = place.cloud.boot(count=count, **fields)
    place.cloud.await_status(uuids, "ACTIVE")
    place.cloud.await_rest()
    for other in HOSTS:
        place.set_service(other, status="enabled")
    assert {place.host_of(uuid) for uuid in uuids} == {host}
    return uuids


def move(server: str, source: str, target: str) -> dict[str, str]:
    return {"server": server, "source": source, "target": target}


def begin(place: Harbour, moves: list[dict[str, str]], **fields: Any) -> str:
    return str(ask(place, "", {"moves": moves, **fields}, 202)["drain"]["id"])


def apply(place: Harbour, proposal: Any, **fields: Any) -> str:
    moves = [move(one["server"], one["source"], one["target"]) for one in proposal["moves"]]
    return begin(place, moves, goal=proposal["goal"], **fields)


def targets(proposal: Any) -> dict[str, int]:
    return dict(Counter(one["target"] for one in proposal["moves"]))


def test_a_full_host_is_relieved(harbour: Make) -> None:
    place = harbour(hosts=3)
    uuids = only_on(place, "fake-1", 6)
    proposal = propose(place)
    assert (proposal["hosts"], proposal["servers"], proposal["movable"]) == (3, 6, 6)
    assert targets(proposal) == {"fake-2": 2, "fake-3": 2}
    assert {one["server"] for one in proposal["moves"]} < set(uuids)
    assert {(one["source"], one["move"]) for one in proposal["moves"]} == {("fake-1", "live-migration")}
    before, after = proposal["before"], proposal["after"]
    assert (before["highest"], before["lowest"], before["empty"]) == (75.0, 0.0, 2)
    assert (after["highest"], after["lowest"], after["empty"], after["deviation"]) == (25.0, 25.0, 0, 0.0)
    gain = sum(one["gain"] for one in proposal["moves"])
    assert gain == pytest.approx(before["deviation"] - after["deviation"], abs=0.01)
    assert len(propose(place, most=1)["moves"]) == 1
    assert propose(place, min_gain=50)["moves"] == []
    assert {place.host_of(uuid) for uuid in uuids} == {"fake-1"}  # it was but a proposal


def test_what_is_even_is_left_alone(harbour: Make) -> None:
    place = harbour(hosts=3)
    for host in HOSTS:
        only_on(place, host, 1)
    proposal = propose(place)
    assert (proposal["moves"], proposal["before"]) == ([], proposal["after"])


def test_a_host_is_freed_with_the_fewest_moves(harbour: Make) -> None:
    place = harbour(hosts=3)
    only_on(place, "fake-1", 4)
    (alone,) = only_on(place, "fake-2", 1)
    proposal = propose(place, goal="free")
    assert [(one["server"], one["target"]) for one in proposal["moves"]] == [(alone, "fake-1")]
    assert (proposal["before"]["empty"], proposal["after"]["empty"]) == (1, 2)


def test_what_is_tied_down_or_busy_is_not_moved(harbour: Make) -> None:
    place = harbour(hosts=3)
    locked, busy, asleep, free = only_on(place, "fake-1", 4, metadata={"fake:reboot": "delay=20"})
    (pinned,) = place.cloud.boot(availability_zone="nova:fake-1")
    place.cloud.await_status([pinned], "ACTIVE")
    place.act(locked, {"lock": None})
    place.act(asleep, {"suspend": None})
    place.cloud.await_rest()
    place.act(busy, {"reboot": {"type": "HARD"}})
    proposal = propose(place)
    assert (proposal["servers"], proposal["movable"]) == (5, 1)
    assert [one["server"] for one in proposal["moves"]] == [free]
    assert propose(place, goal="free")["moves"] == []  # it would not become free


def test_ways_that_are_asked_for_are_kept_to(harbour: Make) -> None:
    place = harbour(hosts=3)
    running, stopped = only_on(place, "fake-1", 2)
    place.act(stopped, {"os-stop": None})
    place.settled(stopped, "SHUTOFF")
    for way, moves in (
        ("live", {running: "live-migration"}),
        ("cold", {running: "migration", stopped: "migration"}),
        ("auto", {running: "live-migration", stopped: "migration"}),
    ):
        proposal = propose(place, way=way)
        assert proposal["movable"] == len(moves)
        assert moves.items() >= {one["server"]: one["move"] for one in proposal["moves"]}.items()


def test_the_scheduler_has_the_last_word(harbour: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed aggregate, a group that has to be apart, a host that is disabled: no move goes there."""
    place = harbour(hosts=3)
    only_on(place, "fake-1", 6)
    place.make_aggregate("theirs", "fake-2", {"filter_tenant_id": "somebody-else"})
    assert targets(propose(place)) == {"fake-3": 3}
    monkeypatch.setattr(rebalancer, "_PATIENCE", 0)
    assert targets(propose(place)).keys() <= {"fake-3"}  # fewer, perhaps; but none that is not allowed
    place.set_service("fake-3", status="disabled")
    proposal = propose(place)
    assert (proposal["hosts"], proposal["moves"]) == (2, [])


def test_members_of_a_group_are_kept_apart(harbour: Make) -> None:
    place = harbour(hosts=3)
    group = {"name": "apart", "policy": "anti-affinity"}
    made = place.cloud.api.simulate_post("/v2.1/os-server-groups", json={"server_group": group})
    hint = {"group": made.json["server_group"]["id"]}
    member, other = (only_on(place, host, 1, hints=hint)[0] for host in HOSTS[:2])
    for uuid in (other, *only_on(place, "fake-1", 3)):
        place.act(uuid, {"lock": None})
    place.set_service("fake-3", status="disabled")
    assert propose(place)["moves"] == []
    place.set_service("fake-3", status="enabled")
    moved = {one["server"]: one["target"] for one in propose(place)["moves"]}
    assert moved == {member: "fake-3"}


def test_only_a_part_of_the_cloud_is_looked_at(harbour: Make) -> None:
    place = harbour(hosts=3)
    place.make_aggregate("north", "fake-1", {"availability_zone": "north"})
    only_on(place, "fake-1", 4)
    proposal = propose(place, aggregate="north")
    assert (proposal["hosts"], proposal["moves"]) == (1, [])
    assert propose(place, zone="north")["hosts"] == 1
    assert propose(place, zone="nova")["hosts"] == 2
    ask(place, "/plan", {"aggregate": "south"}, 404)
    ask(place, "/plan", {"zone": "south"}, 404)


def test_what_makes_no_sense_is_refused(harbour: Make) -> None:
    place = harbour()
    for fields in (
        {"goal": "chaos"},
        {"way": "evacuate"},
        {"most": 0},
        {"most": 1001},
        {"min_gain": -1},
        {"goal": "free", "min_gain": 1},
        {"colour": "red"},
    ):
        ask(place, "/plan", fields, 400)
    moves = [move(ABSENT, "fake-1", "fake-2")]
    ask(place, "", {"moves": moves}, 404)
    ask(place, "", {"moves": [move(ABSENT, "fake-1", "nowhere")]}, 404)
    begun: Any
    for begun in (
        {},
        {"moves": []},
        {"moves": moves * 2},
        {"moves": [{"server": ABSENT}]},
        {"moves": moves, "way": "evacuate"},
        {"moves": moves, "max_parallel": 0},
    ):
        ask(place, "", begun, 400)
    assert place.cloud.get("/v2.1/moorage-drains?kind=rebalance")["drains"] == []


def test_what_is_proposed_is_done(harbour: Make) -> None:
    place = harbour(hosts=3)
    *running, stopped = uuids = only_on(place, "fake-1", 6)
    place.act(stopped, {"os-stop": None})
    place.settled(stopped, "SHUTOFF")
    proposal = propose(place, way="auto")
    drain = ended(place, apply(place, proposal))
    assert (drain["state"], drain["goal"], drain["host"]) == ("finished", "spread", None)
    assert states(drain) == {one["server"]: "moved" for one in proposal["moves"]}
    place.cloud.await_rest()
    homes = dict.fromkeys(uuids, "fake-1")
    homes |= {one["server"]: one["target"] for one in proposal["moves"]}
    for uuid, host in homes.items():
        place.settled(uuid, "ACTIVE" if uuid in running else "SHUTOFF")  # what went cold is confirmed
        is_only_on(place, uuid, host)
    again = propose(place)
    assert (again["moves"], again["before"]) == ([], proposal["after"])
    assert {service_of(place, host)["status"] for host in HOSTS} == {"enabled"}
    assert [one["id"] for one in place.cloud.get("/v2.1/moorage-drains?kind=rebalance")["drains"]] == [
        drain["id"]
    ]
    assert place.cloud.get("/v2.1/moorage-drains")["drains"] == []


def test_what_has_changed_meanwhile_is_left_alone(harbour: Make) -> None:
    place = harbour(hosts=3)
    deleted, elsewhere, locked, asleep, fine = only_on(place, "fake-1", 5)
    moves = [move(uuid, "fake-1", "fake-2") for uuid in (deleted, elsewhere, locked, asleep, fine)]
    place.cloud.delete(deleted)
    place.act(elsewhere, {"os-migrateLive": {"host": "fake-3", "block_migration": "auto"}})
    place.act(locked, {"lock": None})
    place.act(asleep, {"suspend": None})
    place.cloud.await_gone([deleted])
    place.cloud.await_rest()
    drain = ended(place, begin(place, moves))
    assert states(drain) == {
        deleted: "gone",
        elsewhere: "gone",
        locked: "staying",
        asleep: "staying",
        fine: "moved",
    }
    reasons = {server["id"]: server["reason"] for server in drain["servers"]}
    assert reasons[locked] == "It is locked."
    assert reasons[asleep] == "A server that is SUSPENDED can't be moved."
    assert [place.host_of(uuid) for uuid in (elsewhere, locked, fine)] == ["fake-3", "fake-1", "fake-2"]


def test_the_scheduler_is_asked_again_when_a_move_begins(harbour: Make) -> None:
    place = harbour(hosts=3)
    (uuid,) = only_on(place, "fake-1", 1)
    place.set_service("fake-2", status="disabled")
    drain = ended(place, begin(place, [move(uuid, "fake-1", "fake-2")]))
    (server,) = drain["servers"]
    assert (server["state"], server["tries"]) == ("staying", advancing.TRIES)
    assert "No valid host was found" in server["reason"]
    is_only_on(place, uuid, "fake-1")


def test_one_is_under_way_at_a_time_and_can_be_cancelled(harbour: Make) -> None:
    place = harbour(hosts=3)
    uuids = only_on(place, "fake-1", 3, metadata={"fake:live_migrate": "delay=2"})
    moves = [move(uuid, "fake-1", "fake-2") for uuid in uuids]
    drain_id = begin(place, moves, max_parallel=1)
    ask(place, "", {"moves": moves}, 409)
    wait_until(lambda: show(place, drain_id)["counts"]["moving"] == 1, "the first move", 20)
    assert ask_drains(place, f"/{drain_id}/action", {"cancel": None})["drain"]["state"] == "cancelling"
    drain = ended(place, drain_id)
    assert drain["state"] == "cancelled"
    assert sorted(states(drain).values()) == ["moved", "staying", "staying"]
    assert "The rebalance was cancelled." in {server["reason"] for server in drain["servers"]}
