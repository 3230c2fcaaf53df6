"""A database that was restored from a backup: those who know what came after it do no harm, and are heard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.conductor.agents.observations import STRAYS
from moorage.conductor.chores.era_watch import AHEAD, HELD, EraWatch
from moorage.db.tables.compute import addresses, operations
from tests.functional.conductor.backups import Backup, manage
from tests.functional.conductor.conftest import Yard
from tests.functional.conductor.harbour import Harbour
from tests.support.processes import wait_until

OPTIONS: dict[str, Any] = {
    "conductor.audit_grace": 0,
    "conductor.audit_interval": 0,
    "conductor.ask_again_seconds": 0.5,
    "fake.vcpus": 16,
    "compute.allow_resize_to_same_host": True,
}


class Restorable:
    """A cloud that can be ended, and begun again on the same hosts with another state of its database."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url = url
        self._directory = directory
        self._yard: Yard | None = None
        self.begin()

    @property
    def yard(self) -> Yard:
        assert self._yard is not None
        return self._yard

    @property
    def harbour(self) -> Harbour:
        return Harbour(self.yard, self._directory)

    def begin(self) -> None:
        self._yard = Yard(self.url, self._directory / "agents", 2, **OPTIONS)

    def end(self) -> None:
        if self._yard is not None:
            self._yard.stop()
        self._yard = None

    def go_back(self, backup: Backup, *, said: bool = True) -> None:
        self.end()
        backup.restore()
        if said:
            manage(self.url, "db", "restored")
        self.begin()

    def release(self) -> None:
        manage(self.url, "db", "restored", "--release")

    def power(self, uuid: str, action: str, wanted: str) -> None:
        self.harbour.act(uuid, {f"os-{action}": None})
        wait_until(lambda: self.yard.server(uuid)["status"] == wanted, f"the server to be {wanted}", 10)

    def audit(self, *only: str, repair: str = "nothing") -> list[str]:
        """What differs, and is left."""
        asked = {"only": list(only), "repair": repair}
        reply = self.yard.api.simulate_post("/v2.1/moorage-audits", json={"audit": asked})
        path = f"/v2.1/moorage-audits/{reply.json['audit']['id']}"
        wait_until(lambda: self.yard.get(path)["audit"]["stage"] == "done", "the audit", 60)
        shown = self.yard.get(path)
        assert shown["audit"]["failures"] == {}
        return [one["sentence"] for one in shown["findings"] if not one["repaired"]]

    def ask_to_adopt(self, uuid: str, host: str) -> Any:
        body = {"adoption": {"server_id": uuid, "host": host}}
        return self.yard.api.simulate_post("/v2.1/moorage-adoptions", json=body)

    def adopt(self, uuid: str, host: str) -> None:
        reply = self.ask_to_adopt(uuid, host)
        assert reply.status_code == 202, reply.text
        self.yard.await_rest()

    def say_again(self) -> None:
        """Each host says all that it has."""
        for agent in self.yard.cloud.agents.values():
            agent._say_again()

    def unfinished(self) -> list[str]:
        query = sa.select(operations.c.kind).where(operations.c.finished_at.is_(None))
        with self.yard.placement.database.read() as connection:
            return list(connection.execute(query).scalars())


@pytest.fixture
def cloud(database_url: str, tmp_path: Path) -> Iterator[Restorable]:
    made = Restorable(database_url, tmp_path)
    yield made
    made.end()


def test_servers_of_before_are_worked_with_at_once(cloud: Restorable) -> None:
    """Their hosts remember tasks with higher numbers than those that come now."""
    kept, deleted = cloud.harbour.running(), cloud.harbour.running()
    backup = Backup(cloud.url)
    for _ in range(3):
        cloud.power(kept, "stop", "SHUTOFF")
        cloud.power(kept, "start", "ACTIVE")
    cloud.power(kept, "stop", "SHUTOFF")
    cloud.yard.await_rest()
    cloud.go_back(backup)
    wait_until(lambda: cloud.yard.server(kept)["status"] == "SHUTOFF", "what its host sees of it", 10)
    cloud.power(kept, "start", "ACTIVE")
    cloud.power(kept, "stop", "SHUTOFF")
    cloud.yard.delete(deleted)
    cloud.yard.await_gone([deleted])
    cloud.harbour.running()


def test_a_server_that_moved_since_is_not_discarded_before_somebody_has_looked(cloud: Restorable) -> None:
    uuid = cloud.harbour.running()
    source = cloud.harbour.host_of(uuid)
    backup = Backup(cloud.url)
    cloud.harbour.act(uuid, {"os-migrateLive": {"host": None, "block_migration": "auto"}})
    wait_until(lambda: cloud.harbour.host_of(uuid) != source, "the move", 20)
    cloud.yard.await_rest()
    (target,) = set(cloud.harbour.copies(uuid))
    found = _strays()
    cloud.go_back(backup)
    wait_until(lambda: _strays() > found, "a conductor to hear of it", 10)
    cloud.harbour.running(availability_zone=f"nova:{target}")  # it hears of all that it was told before
    assert set(cloud.harbour.copies(uuid)) == {target}
    assert [f"host {target} has server {uuid}" in one for one in cloud.audit("host-servers")].count(True) == 1
    cloud.adopt(uuid, target)
    cloud.release()
    cloud.say_again()
    other = cloud.harbour.running(availability_zone=f"nova:{target}")
    assert set(cloud.harbour.copies(uuid)) == {target}
    assert cloud.harbour.host_of(uuid) == target
    assert set(cloud.harbour.held(uuid)) == {target}
    assert cloud.yard.server(other)["status"] == "ACTIVE"
    assert cloud.audit() == []
    cloud.power(uuid, "stop", "SHUTOFF")


def test_a_release_has_hosts_discard_what_is_elsewhere(cloud: Restorable) -> None:
    uuid = cloud.harbour.running()
    source = cloud.harbour.host_of(uuid)
    backup = Backup(cloud.url)
    cloud.harbour.act(uuid, {"os-migrateLive": {"host": None, "block_migration": "auto"}})
    wait_until(lambda: cloud.harbour.host_of(uuid) != source, "the move", 20)
    cloud.yard.await_rest()
    cloud.go_back(backup)
    cloud.release()
    cloud.say_again()
    wait_until(lambda: not cloud.harbour.copies(uuid), "the copy to be discarded", 10)


def test_what_came_after_the_backup_is_named_and_adopted_or_removed(cloud: Restorable) -> None:
    gone = cloud.harbour.running(name="gone")
    backup = Backup(cloud.url)
    first, second = cloud.harbour.running(name="first"), cloud.harbour.running(name="second")
    before, host = cloud.yard.server(first), cloud.harbour.host_of(first)
    held, used = cloud.harbour.held(first), cloud.harbour.used()["totalCoresUsed"]
    other = cloud.harbour.host_of(second)
    cloud.yard.delete(gone)
    cloud.yard.await_gone([gone])
    cloud.yard.await_rest()
    cloud.go_back(backup)
    said = " ".join(cloud.audit("host-servers"))
    assert f"host {host} has server {first}, which nobody knows" in said
    assert f"host {other} has server {second}, which nobody knows" in said
    assert f"does not have server {gone}" in said
    cloud.adopt(first, host)
    cloud.adopt(second, other)
    cloud.yard.delete(second)
    cloud.yard.await_gone([second])
    assert cloud.audit("host-servers", repair="all") == []
    assert cloud.yard.server(gone)["status"] == "ERROR"
    cloud.yard.delete(gone)
    cloud.yard.await_gone([gone])
    cloud.yard.await_rest()
    after = cloud.yard.server(first)
    same = ("name", "tenant_id", "user_id", "flavor", "image", "addresses", "status", "metadata")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert after["OS-EXT-SRV-ATTR:instance_name"] == before["OS-EXT-SRV-ATTR:instance_name"]
    assert cloud.harbour.held(first) == held
    assert cloud.harbour.used()["totalCoresUsed"] == used - 2  # of `second` and `gone`
    assert cloud.yard.addressed() == {first}
    assert cloud.audit() == []
    cloud.power(first, "stop", "SHUTOFF")
    assert not cloud.harbour.copies(second)


@pytest.mark.parametrize("same_host", [True, False])
def test_a_server_that_was_resized_since_is_adopted_as_it_is(cloud: Restorable, same_host: bool) -> None:
    uuid = cloud.harbour.running()
    source = cloud.harbour.host_of(uuid)
    backup = Backup(cloud.url)
    other = next(name for name in cloud.yard.cloud.agents if name != source)
    cloud.harbour.set_service(other if same_host else source, status="disabled")
    cloud.harbour.act(uuid, {"resize": {"flavorRef": "3"}})
    cloud.yard.await_status([uuid], "VERIFY_RESIZE")
    cloud.harbour.act(uuid, {"confirmResize": None}, status=204)
    cloud.yard.await_status([uuid], "ACTIVE")
    cloud.yard.await_rest()
    before, held, used = cloud.yard.server(uuid), cloud.harbour.held(uuid), cloud.harbour.used()
    host = cloud.harbour.host_of(uuid)
    assert (host == source) is same_host
    cloud.go_back(backup)
    assert cloud.yard.server(uuid)["flavor"] != before["flavor"]
    cloud.adopt(uuid, host)
    assert cloud.yard.server(uuid)["flavor"] == before["flavor"]
    assert cloud.harbour.held(uuid) == held
    assert cloud.harbour.used()["totalCoresUsed"] == used["totalCoresUsed"]
    assert cloud.audit() == []


def test_a_resize_that_was_reverted_since_is_reverted_again(cloud: Restorable) -> None:
    """In the restored database its server is where it has never come to stay."""
    uuid = cloud.harbour.running()
    source = cloud.harbour.host_of(uuid)
    cloud.harbour.act(uuid, {"migrate": None})
    wait_until(lambda: cloud.yard.server(uuid)["status"] == "VERIFY_RESIZE", "the move", 20)
    cloud.yard.await_rest()
    backup = Backup(cloud.url)
    cloud.harbour.act(uuid, {"revertResize": None})
    wait_until(lambda: cloud.yard.server(uuid)["status"] == "ACTIVE", "the way back", 20)
    cloud.yard.await_rest()
    cloud.go_back(backup)
    cloud.say_again()
    (finding,) = cloud.audit()
    assert "which is resized there" in finding
    cloud.release()
    cloud.harbour.act(uuid, {"revertResize": None})
    wait_until(lambda: cloud.yard.server(uuid)["status"] == "ACTIVE", "the way back, again", 20)
    cloud.yard.await_rest()
    assert set(cloud.harbour.copies(uuid)) == {source}
    assert cloud.harbour.host_of(uuid) == source


def test_an_address_that_is_another_servers_by_now_is_not_taken_from_it(cloud: Restorable) -> None:
    backup = Backup(cloud.url)
    uuid = cloud.harbour.running()
    host = cloud.harbour.host_of(uuid)
    ((shown, *_),) = cloud.harbour.addresses(uuid).values()
    address = shown["addr"]
    cloud.go_back(backup)
    rival = cloud.harbour.running()
    with cloud.yard.placement.database.write() as connection:
        connection.execute(sa.update(addresses).values(address=address))
    refused = cloud.ask_to_adopt(uuid, host)
    assert refused.status_code == 409, refused.text
    assert f"Address {address} of server {uuid} is {rival}'s by now." in refused.text
    assert cloud.yard.api.simulate_get(f"/v2.1/servers/{uuid}").status_code == 404


def test_only_what_a_host_has_is_adopted(cloud: Restorable) -> None:
    uuid = cloud.harbour.running()
    host = cloud.harbour.host_of(uuid)
    other = next(name for name in cloud.yard.cloud.agents if name != host)
    assert cloud.ask_to_adopt(uuid, other).status_code == 409
    assert cloud.ask_to_adopt(uuid, "nobody").status_code == 503
    assert cloud.harbour.host_of(uuid) == host


def _strays() -> float:
    return float(STRAYS._value.get())


def test_what_was_under_way_waits_for_the_release(cloud: Restorable) -> None:
    """It may have been done since, and something else after it."""
    uuid = cloud.harbour.running()
    cloud.yard.cloud._conductor.runner.stop()
    cloud.harbour.act(uuid, {"os-stop": None})
    backup = Backup(cloud.url)
    cloud.go_back(backup)
    (other,) = cloud.yard.boot()
    cloud.yard.await_status([other], "ACTIVE")
    assert cloud.unfinished() == ["stop"]
    assert cloud.yard.server(uuid)["OS-EXT-STS:task_state"] == "powering-off"
    cloud.release()
    wait_until(lambda: cloud.yard.server(uuid)["status"] == "SHUTOFF", "the stop", 10)
    assert cloud.yard.server(other)["status"] == "ACTIVE"


def test_a_restore_that_nobody_told_of_is_noticed(cloud: Restorable) -> None:
    """And does harm until somebody does: what hosts are asked for has numbers that they know."""
    uuid = cloud.harbour.running()
    backup = Backup(cloud.url)
    for _ in range(2):
        cloud.power(uuid, "stop", "SHUTOFF")
        cloud.power(uuid, "start", "ACTIVE")
    cloud.yard.await_rest()
    cloud.go_back(backup, said=False)
    watch = EraWatch(cloud.yard.placement.database)

    def ahead() -> float:
        watch.look()
        return float(AHEAD._value.get())

    wait_until(lambda: ahead() == 1, "the host to be heard", 10)
    (said,) = cloud.audit("era")
    assert "knows of operation" in said
    assert "moorage-manage db restored" in said
    cloud.harbour.act(uuid, {"os-stop": None})
    cloud.end()
    manage(cloud.url, "db", "restored")
    cloud.begin()
    watch = EraWatch(cloud.yard.placement.database)
    assert ahead() == 0
    assert HELD._value.get() == 1
    cloud.release()
    wait_until(lambda: cloud.yard.server(uuid)["status"] == "SHUTOFF", "the stop", 10)
    assert ahead() == HELD._value.get() == 0
