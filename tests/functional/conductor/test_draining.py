"""Drains: a host is emptied server by server, whoever is killed meanwhile; what stays is explained."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.drains import advancing, drains
from moorage.compute.growth import purging
from moorage.compute.growth.purging import Remains
from moorage.conductor.chores.draining import Draining
from moorage.core.clock import utcnow
from moorage.db.tables.compute import operations
from moorage.db.tables.drains import drained_servers
from tests.functional.conductor.conftest import Make
from tests.functional.conductor.harbour import Harbour
from tests.support.processes import wait_until

ABSENT = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advancing, "RETRY_PAUSE", timedelta(seconds=0.2))


def ask(place: Harbour, path: str, body: Any, status: int = 202) -> Any:
    reply = place.cloud.api.simulate_post(f"/v2.1/moorage-drains{path}", json=body)
    assert reply.status_code == status, reply.text
    return reply.json


def begin(place: Harbour, host: str, **fields: Any) -> str:
    return str(ask(place, "", {"drain": {"host": host, **fields}})["drain"]["id"])


def show(place: Harbour, drain_id: str) -> Any:
    return place.cloud.get(f"/v2.1/moorage-drains/{drain_id}")["drain"]


def ended(place: Harbour, drain_id: str) -> Any:
    wait_until(lambda: show(place, drain_id)["finished_at"] is not None, "the end of the drain", 60)
    return show(place, drain_id)


def on_host(place: Harbour, host: str, count: int, **fields: Any) -> list[str]:
    uuids = place.cloud.boot(count=count, availability_zone=f"nova:{host}", **fields)
    place.cloud.await_status(uuids, "ACTIVE")
    place.cloud.await_rest()
    return uuids


def only_on(place: Harbour, uuid: str, host: str) -> None:
    """The server is on this host and on no other, and holds that host and nothing else."""
    wait_until(lambda: set(place.copies(uuid)) == {host}, f"only {host} to have the server", 20)
    assert place.host_of(uuid) == host
    assert set(place.held(uuid)) == {host}


def states(drain: Any) -> dict[str, str]:
    return {server["id"]: server["state"] for server in drain["servers"]}


def service_of(place: Harbour, host: str) -> Any:
    found = place.cloud.get("/v2.1/os-services?binary=nova-compute")["services"]
    return next(service for service in found if service["host"] == host)


def test_everything_leaves_and_nothing_comes(harbour: Make) -> None:
    place = harbour()
    running = on_host(place, "fake-1", 2)
    (stopped,) = on_host(place, "fake-1", 1)
    place.act(stopped, {"os-stop": None})
    place.settled(stopped, "SHUTOFF")
    drain = ended(place, begin(place, "fake-1"))
    assert (drain["state"], drain["counts"]["moved"]) == ("finished", 3)
    moves = {server["id"]: server["move"] for server in drain["servers"]}
    assert moves == {**dict.fromkeys(running, "live-migration"), stopped: "migration"}
    place.cloud.await_rest()
    for uuid in running:
        only_on(place, uuid, place.settled(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"])
    moved = place.settled(stopped, "SHUTOFF")  # not in VERIFY_RESIZE: what kept its room is gone
    only_on(place, stopped, moved["OS-EXT-SRV-ATTR:host"])
    assert "fake-1" not in {place.host_of(uuid) for uuid in (*running, stopped)}
    service = service_of(place, "fake-1")
    assert service["status"] == "disabled"
    assert drain["id"] in service["disabled_reason"]


def test_no_more_move_at_once_than_were_allowed(harbour: Make) -> None:
    place = harbour()
    on_host(place, "fake-1", 5, metadata={"fake:live_migrate": "delay=0.5"})
    drain_id = begin(place, "fake-1", max_parallel=2)
    most = 0
    while (drain := show(place, drain_id))["finished_at"] is None:
        most = max(most, drain["counts"]["moving"])
    assert (most, drain["counts"]["moved"]) == (2, 5)


def test_what_fits_nowhere_is_told_before_and_after(harbour: Make) -> None:
    place = harbour(**{"fake.vcpus": 2})
    uuids = on_host(place, "fake-1", 2)
    on_host(place, "fake-2", 1)
    body = {"drain": {"host": "fake-1"}}
    planned = ask(place, "/plan", body, 200)["plan"]["servers"]
    assert [server["host"] for server in planned].count("fake-2") == 1
    (stays,) = [server for server in planned if server["host"] is None]
    assert "No valid host was found" in stays["reason"]
    assert service_of(place, "fake-1")["status"] == "enabled"  # it was but a plan
    drain = ended(place, begin(place, "fake-1"))
    assert sorted(states(drain).values()) == ["moved", "staying"]
    (left,) = [server for server in drain["servers"] if server["state"] == "staying"]
    assert left["tries"] == advancing.TRIES
    assert "No valid host was found" in left["reason"]
    only_on(place, left["id"], "fake-1")
    assert {place.host_of(uuid) for uuid in uuids} == {"fake-1", "fake-2"}


def test_a_server_in_no_state_to_move_stays_with_a_reason(harbour: Make) -> None:
    place = harbour()
    (uuid,) = on_host(place, "fake-1", 1)
    place.act(uuid, {"suspend": None})
    place.settled(uuid, "SUSPENDED")
    planned = ask(place, "/plan", {"drain": {"host": "fake-1"}}, 200)["plan"]["servers"]
    drain = ended(place, begin(place, "fake-1"))
    assert (
        planned[0]["reason"] == drain["servers"][0]["reason"] == "A server that is SUSPENDED can't be moved."
    )


@pytest.mark.parametrize(("way", "stays"), [("live", "SHUTOFF"), ("cold", "PAUSED")])
def test_a_way_that_is_asked_for_is_kept_to(harbour: Make, way: str, stays: str) -> None:
    place = harbour()
    running, stopped, paused = on_host(place, "fake-1", 3)
    place.act(stopped, {"os-stop": None})
    place.act(paused, {"pause": None})
    place.settled(paused, "PAUSED")
    place.settled(stopped, "SHUTOFF")
    drain = ended(place, begin(place, "fake-1", way=way))
    kept = {server["id"]: server["reason"] for server in drain["servers"] if server["state"] == "staying"}
    assert kept == {
        stopped
        if way == "live"
        else paused: f"A server that is {stays} can't be moved, as it is asked ({way})."
    }
    assert states(drain)[running] == "moved"


def test_a_server_that_is_busy_is_waited_for(harbour: Make) -> None:
    place = harbour()
    (uuid,) = on_host(place, "fake-1", 1, metadata={"fake:reboot": "delay=3"})
    place.act(uuid, {"reboot": {"type": "HARD"}})
    drain_id = begin(place, "fake-1")
    wait_until(lambda: states(show(place, drain_id)) == {uuid: "waiting"}, "the server's turn", 10)
    assert states(ended(place, drain_id)) == {uuid: "moved"}


def test_a_server_that_was_on_its_way_there_leaves_too(harbour: Make) -> None:
    place = harbour()
    (uuid,) = place.cloud.boot(availability_zone="nova:fake-1", metadata={"fake:spawn": "delay=2"})
    place.await_task_state(uuid, "spawning")
    (first,) = place.cloud.boot(availability_zone="nova:fake-1", metadata={"fake:live_migrate": "delay=4"})
    place.cloud.await_status([first], "ACTIVE")
    drain = ended(place, begin(place, "fake-1"))
    assert states(drain) == {uuid: "moved", first: "moved"}


def test_a_move_that_fails_is_tried_again(harbour: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advancing, "TRIES", 1000)
    place = harbour()
    (uuid,) = on_host(place, "fake-1", 1)
    place.set_service("fake-2", status="disabled")
    drain_id = begin(place, "fake-1")
    wait_until(lambda: bool(show(place, drain_id)["servers"][0]["tries"]), "the first try", 20)
    place.set_service("fake-2", status="enabled")
    drain = ended(place, drain_id)
    assert states(drain) == {uuid: "moved"}
    assert drain["servers"][0]["reason"] is None


def test_a_server_that_its_user_deletes_holds_nobody_up(harbour: Make) -> None:
    place = harbour()
    uuids = on_host(place, "fake-1", 2, metadata={"fake:live_migrate": "hang"})
    drain_id = begin(place, "fake-1", max_parallel=1)
    wait_until(lambda: show(place, drain_id)["counts"]["moving"] == 1, "the first move", 20)
    for uuid in uuids:
        place.cloud.delete(uuid)
    assert set(states(ended(place, drain_id)).values()) == {"gone"}
    place.cloud.await_gone(uuids)
    place.cloud.await_rest()


def test_cancelled_it_begins_nothing_more(harbour: Make) -> None:
    place = harbour()
    uuids = on_host(place, "fake-1", 3, metadata={"fake:live_migrate": "delay=2"})
    drain_id = begin(place, "fake-1", max_parallel=1)
    wait_until(lambda: show(place, drain_id)["counts"]["moving"] == 1, "the first move", 20)
    assert ask(place, f"/{drain_id}/action", {"cancel": None})["drain"]["state"] == "cancelling"
    drain = ended(place, drain_id)
    assert drain["state"] == "cancelled"
    assert sorted(states(drain).values()) == ["moved", "staying", "staying"]
    assert [place.host_of(uuid) for uuid in uuids].count("fake-1") == 2
    ask(place, f"/{drain_id}/action", {"cancel": None}, 409)


def test_the_deadline_ends_it(harbour: Make) -> None:
    place = harbour()
    on_host(place, "fake-1", 2, metadata={"fake:live_migrate": "delay=8"})
    drain = ended(place, begin(place, "fake-1", max_parallel=1, deadline_seconds=5))
    assert drain["state"] == "finished"
    assert sorted(states(drain).values()) == ["moved", "staying"]
    assert "The drain's deadline has passed." in {server["reason"] for server in drain["servers"]}


def test_a_dead_host_is_evacuated(harbour: Make) -> None:
    place = harbour()
    uuids = on_host(place, "fake-1", 3)
    ask(place, "", {"drain": {"host": "fake-1", "way": "evacuate"}}, 409)
    place.die("fake-1")
    ask(place, "", {"drain": {"host": "fake-1"}}, 409)
    drain = ended(place, begin(place, "fake-1", way="evacuate"))
    assert set(states(drain).values()) == {"moved"}
    for uuid in uuids:
        only_on(place, uuid, place.settled(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"])


def test_a_host_is_drained_once_at_a_time(harbour: Make) -> None:
    place = harbour()
    on_host(place, "fake-1", 1, metadata={"fake:live_migrate": "delay=2"})
    first = begin(place, "fake-1")
    ask(place, "", {"drain": {"host": "fake-1"}}, 409)
    ended(place, first)
    with place.cloud.placement.database.read() as connection:
        assert purging.count(connection, Remains.DRAINS, utcnow()) == 1
    again = ended(place, begin(place, "fake-1"))
    assert again["disabled_host"] is True  # as it was by the first: whoever ends this may enable it
    assert [drain["id"] for drain in place.cloud.get("/v2.1/moorage-drains?host=fake-1")["drains"]] == [
        again["id"],
        first,
    ]


def test_a_host_that_somebody_disabled_before_is_left_so(harbour: Make) -> None:
    place = harbour()
    place.set_service("fake-1", status="disabled", disabled_reason="the fan is loud")
    assert ended(place, begin(place, "fake-1"))["disabled_host"] is False
    (service,) = place.cloud.get("/v2.1/os-services?host=fake-1&binary=nova-compute")["services"]
    assert service["disabled_reason"] == "the fan is loud"


def test_what_makes_no_sense_is_refused(harbour: Make) -> None:
    place = harbour()
    ask(place, "", {"drain": {"host": "nowhere"}}, 404)
    ask(place, "/plan", {"drain": {"host": "nowhere"}}, 404)
    ask(place, f"/{ABSENT}/action", {"cancel": None}, 404)
    for fields in (
        {"way": "sideways"},
        {"max_parallel": 0},
        {"deadline_seconds": 0},
        {"colour": "red"},
        {"host": 1},
    ):
        ask(place, "", {"drain": {"host": "fake-1", **fields}}, 400)
    assert place.cloud.api.simulate_get(f"/v2.1/moorage-drains/{ABSENT}").status_code == 404
    assert place.cloud.get("/v2.1/moorage-drains")["drains"] == []


def test_a_round_that_is_cut_off_has_begun_all_or_nothing(
    harbour: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conductor dies between the operation and the note of it: neither is there."""
    monkeypatch.setattr(Draining, "look", lambda _self: None)
    place = harbour()
    on_host(place, "fake-1", 2)
    drain_id = begin(place, "fake-1")
    database = place.cloud.placement.database

    def killed(connection: Connection) -> None:
        (number,) = drains.all_unfinished(connection)
        advancing.advance(connection, number, down_time=60)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        database.transact(killed)
    with database.read() as connection:
        unfinished = sa.select(sa.func.count()).where(operations.c.finished_at.is_(None))
        assert connection.execute(unfinished).scalar_one() == 0
        assert set(connection.execute(sa.select(drained_servers.c.state)).scalars()) == {"waiting"}
    assert show(place, drain_id)["counts"]["waiting"] == 2
