"""Live migration: a server moves while it runs; it can be called off, or hurried."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.conductor.conftest import Make
from tests.functional.conductor.harbour import Harbour
from tests.support.processes import wait_until


def live(host: str | None = None) -> dict[str, Any]:
    return {"os-migrateLive": {"host": host, "block_migration": "auto"}}


def under_way(place: Harbour, uuid: str, status: str = "running") -> Any:
    """The server's live migration once it is in this status."""

    def found() -> list[Any]:
        migrations = place.cloud.get(f"/v2.1/servers/{uuid}/migrations")["migrations"]
        return [one for one in migrations if one["status"] == status]

    wait_until(lambda: bool(found()), f"a migration that is {status}", 20)
    return found()[0]


def test_a_server_moves_while_it_runs(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    source, addresses = place.host_of(uuid), place.addresses(uuid)
    (before,) = place.copies(uuid).values()
    place.act(uuid, live())
    target = place.settled(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"]
    assert target != source
    after = place.only_on(uuid, target)
    assert (after.disk, after.power) == (before.disk, 1)
    assert place.addresses(uuid) == addresses
    (migration,) = place.migrations(uuid)
    assert (migration["status"], migration["migration_type"]) == ("completed", "live-migration")


def test_it_is_looked_at_while_it_is_under_way(harbour: Make) -> None:
    place = harbour()
    uuid = place.running(metadata={"fake:live_migrate": "hang"})
    source = place.host_of(uuid)
    place.act(uuid, live())
    migration = under_way(place, uuid)
    assert place.cloud.server(uuid)["status"] == "MIGRATING"
    place.on_both(uuid, source, migration["dest_compute"])
    path = f"/v2.1/servers/{uuid}/migrations/{migration['id']}"
    assert place.cloud.get(path)["migration"] == migration
    assert migration["source_compute"] == source
    assert migration["memory_total_bytes"] is None
    (listed,) = place.migrations(uuid)
    assert [link["rel"] for link in listed["links"]] == ["self", "bookmark"]
    reply = place.cloud.api.simulate_post(f"{path}/action", json={"force_complete": None})
    assert reply.status_code == 202, reply.text
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, migration["dest_compute"])
    assert place.cloud.api.simulate_get(path).status_code == 404


def test_it_can_be_aborted(harbour: Make) -> None:
    place = harbour()
    uuid = place.running(metadata={"fake:live_migrate": "hang"})
    source, before = place.host_of(uuid), place.held(uuid)
    place.act(uuid, live())
    migration = under_way(place, uuid)
    reply = place.cloud.api.simulate_delete(f"/v2.1/servers/{uuid}/migrations/{migration['id']}")
    assert reply.status_code == 202, reply.text
    place.settled(uuid, "ACTIVE")
    assert place.only_on(uuid, source).power == 1
    assert place.held(uuid) == before
    assert place.migrations(uuid)[0]["status"] == "cancelled"


def test_it_can_be_aborted_before_it_runs(harbour: Make) -> None:
    place = harbour()
    uuid = place.running(metadata={"fake:expect": "delay=2"})
    source = place.host_of(uuid)
    place.act(uuid, live())
    migration = under_way(place, uuid, "preparing")
    path = f"/v2.1/servers/{uuid}/migrations/{migration['id']}"
    older = {"openstack-api-version": "compute 2.64"}
    assert place.cloud.api.simulate_delete(path, headers=older).status_code == 400
    assert place.cloud.api.simulate_delete(path).status_code == 202
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, source)
    assert place.migrations(uuid)[0]["status"] == "cancelled"


@pytest.mark.parametrize("step", ["expect", "live_migrate", "take_over"])
def test_a_migration_that_fails_leaves_the_server_as_it_was(harbour: Make, step: str) -> None:
    place = harbour()
    uuid = place.running(metadata={f"fake:{step}": "fail"})
    source, before, addresses = place.host_of(uuid), place.held(uuid), place.addresses(uuid)
    place.act(uuid, live())
    place.settled(uuid, "ACTIVE")
    assert place.only_on(uuid, source).power == 1
    assert place.held(uuid) == before
    assert place.addresses(uuid) == addresses
    assert f"{step} shall fail" in place.last_error(uuid)
    assert place.migrations(uuid)[0]["status"] == "error"


def test_a_destination_that_can_not_have_it_is_left_for_the_next(harbour: Make) -> None:
    place = harbour(hosts=4)
    uuid = place.running(metadata={"fake:expect": "fail_here"})
    source = place.host_of(uuid)
    place.act(uuid, live())
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, source)
    hosts = {one["trace"]["chosen"]["host"] for one in place.traces(uuid)[1:]}
    assert hosts == {"fake-1", "fake-2", "fake-3", "fake-4"} - {source}


@pytest.mark.parametrize("step", ["expect", "live_migrate", "take_over"])
def test_deleting_in_mid_migration_cleans_both_ends(harbour: Make, step: str) -> None:
    place = harbour()
    uuid = place.running(metadata={f"fake:{step}": "delay=30"})
    place.act(uuid, live())
    statuses = {"expect": "preparing", "live_migrate": "running", "take_over": "post-migrating"}
    under_way(place, uuid, statuses[step])
    place.cloud.delete(uuid)
    place.nothing_left(uuid)


def test_what_makes_no_sense_is_refused(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    source = place.host_of(uuid)
    for body, status, words, version in (
        ({"host": "nowhere", "block_migration": "auto"}, 400, "nowhere could not be found", "2.96"),
        ({"host": source, "block_migration": "auto"}, 400, "to current host", "2.96"),
        ({"host": None, "block_migration": "auto", "force": True}, 400, "Can't force", "2.30"),
        ({"host": None, "block_migration": "auto"}, 400, "block_migration", "2.1"),
        ({"host": None, "block_migration": False, "disk_over_commit": False}, 400, "disk_over", "2.25"),
    ):
        assert words in place.refused(uuid, {"os-migrateLive": body}, status, version=version)
    place.act(uuid, {"os-stop": None})
    place.settled(uuid, "SHUTOFF")
    assert "vm_state stopped" in place.refused(uuid, live(), 409)
    path = f"/v2.1/servers/{uuid}/migrations/7"
    assert place.cloud.api.simulate_get(path).status_code == 404
    assert place.cloud.api.simulate_delete(path).status_code == 409
    assert place.cloud.api.simulate_post(f"{path}/action", json={"force_complete": None}).status_code == 409


def test_before_2_34_it_is_checked_before_it_is_accepted(harbour: Make) -> None:
    place = harbour(hosts=4)
    uuid = place.running(host="fake-1")
    before = place.held(uuid)
    place.running_many(8, host="fake-2")
    place.set_service("fake-3", status="disabled")
    place.die("fake-4")
    for host, words in (
        ("fake-2", "vcpu: needs 1, free 0 of 8"),
        ("fake-3", "disabled"),
        ("fake-4", "down"),
        (None, "no valid host was found"),
    ):
        told = place.refused(uuid, live(host), 400, version="2.33")
        assert words in told.lower()
        assert place.last_error(uuid) == told
        assert place.traces(uuid)[-1]["trace"]["chosen"] is None
    assert place.migrations(uuid) == []
    assert place.held(uuid) == before
    place.settled(uuid, "ACTIVE")
    place.act(uuid, live("fake-3"), version="2.34")
    place.settled(uuid, "ACTIVE")
    assert "disabled" in place.last_error(uuid)

    place.set_service("fake-4", forced_down=False)
    place.die("fake-1")
    told = place.refused(uuid, live("fake-4"), 400, version="2.33")
    assert told == "Compute service of fake-1 is unavailable at this time."
    place.set_service("fake-1", forced_down=False)
    place.act(uuid, live("fake-4"), version="2.33")
    place.settled(uuid, "ACTIVE")
    assert set(place.held(uuid)) == {"fake-4"}
