"""Live migration with a driver that sends a server for good: it is not lost, whatever fails meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.conductor.operations.moves import live_migrate
from moorage.drivers.contract import NO_STATE, DriverError, Parcel, ServerSpec
from moorage.drivers.fake import plugin
from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from moorage.drivers.parts import ARRIVED
from tests.functional.conductor.conftest import Make
from tests.functional.conductor.test_live_migration import live, under_way
from tests.support.processes import wait_until


class Hypervisors:
    """What happens to guests that are on their way."""

    def __init__(self) -> None:
        self.hosts: dict[str, SendingDriver] = {}
        self.sends = self.arrives = self.is_taken_over = True
        self.may_answer = threading.Event()
        """What the source says is held back until then."""
        self.may_answer.set()
        self.looks = 0


class SendingDriver(FakeDriver):
    """As a hypervisor does it: the guest runs at its destination before the source has said so."""

    world: Hypervisors

    def __init__(self, host: str, settings: FakeSettings, directory: Path, *more: Any) -> None:
        super().__init__(host, settings, directory, *more)
        self.world.hosts[host] = self

    def live_migrate(self, server_uuid: str, node_uuid: str, destination: Parcel) -> Parcel:
        server = self._servers.get(server_uuid)
        if server is not None and self.world.sends:
            other = self.world.hosts[destination["host"]]
            (node,) = other.nodes()
            other._servers.put(msgspec.structs.replace(server, node_uuid=node.uuid))
            self._servers.remove(server_uuid)
        self.world.may_answer.wait(60)
        return {ARRIVED: True}

    def power(self, server_uuid: str, node_uuid: str) -> int:
        self.world.looks += 1
        return super().power(server_uuid, node_uuid) if self.world.arrives else NO_STATE

    def take_over(self, spec: ServerSpec, parcel: Parcel) -> int:
        if not self.world.is_taken_over:
            raise DriverError("it does not answer")
        return self._present(spec.uuid).power


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hypervisors]:
    world = Hypervisors()
    monkeypatch.setattr(SendingDriver, "world", world, raising=False)
    monkeypatch.setattr(plugin, "FakeDriver", SendingDriver)
    monkeypatch.setattr(live_migrate, "_LOOK_SECONDS", 0.1)
    yield world
    world.may_answer.set()


def test_a_server_whose_source_is_lost_is_found_at_its_destination(harbour: Make, world: Hypervisors) -> None:
    place = harbour()
    uuid = place.running()
    source = place.host_of(uuid)
    world.may_answer.clear()
    place.act(uuid, live())
    target = under_way(place, uuid)["dest_compute"]
    wait_until(lambda: set(place.copies(uuid)) == {target}, "the guest to be there", 20)
    world.arrives = False
    place.die(source)
    wait_until(lambda: world.looks > 2, "several looks", 20)
    assert place.cloud.server(uuid)["status"] == "MIGRATING"
    world.arrives = True
    place.settled(uuid, "ACTIVE")
    assert place.only_on(uuid, target).power == 1
    assert place.migrations(uuid)[0]["status"] == "completed"


def test_a_server_that_was_not_sent_before_its_source_was_lost_stays(
    harbour: Make, world: Hypervisors
) -> None:
    place = harbour()
    uuid = place.running()
    source, before = place.host_of(uuid), place.held(uuid)
    world.sends = False
    world.may_answer.clear()
    place.act(uuid, live())
    under_way(place, uuid)
    place.die(source)
    place.settled(uuid, "ACTIVE")
    assert place.only_on(uuid, source).power == 1
    assert place.held(uuid) == before
    assert place.migrations(uuid)[0]["status"] == "error"


def test_a_source_that_comes_back_is_asked_again(harbour: Make, world: Hypervisors) -> None:
    place = harbour()
    uuid = place.running()
    source = place.host_of(uuid)
    world.may_answer.clear()
    place.act(uuid, live())
    target = under_way(place, uuid)["dest_compute"]
    wait_until(lambda: set(place.copies(uuid)) == {target}, "the guest to be there", 20)
    place.die(target)
    place.die(source)
    wait_until(lambda: place.cloud.server(uuid)["status"] == "MIGRATING", "patience", 20)
    place.set_service(source, forced_down=False)
    place.set_service(target, forced_down=False)
    world.may_answer.set()
    place.settled(uuid, "ACTIVE")
    assert place.only_on(uuid, target).power == 1


def test_a_server_that_has_arrived_is_not_destroyed_there(harbour: Make, world: Hypervisors) -> None:
    place = harbour()
    uuid = place.running()
    world.is_taken_over = False
    place.act(uuid, live())
    server = place.settled(uuid, "ERROR")
    target = place.migrations(uuid)[0]["dest_compute"]
    assert server["OS-EXT-SRV-ATTR:host"] == target
    assert place.only_on(uuid, target).power == 1
    assert "it does not answer" in place.last_error(uuid)
    assert place.migrations(uuid)[0]["status"] == "error"
