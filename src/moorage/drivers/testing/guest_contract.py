"""What drivers have to hold whose servers are guests: that can be paused, suspended, rescued, looked at."""

from __future__ import annotations

import time
from contextlib import suppress

import msgspec
import pytest

from moorage.drivers.contract import PAUSED, RUNNING, SHUT_DOWN, SUSPENDED, DriverError, ServerSpec
from moorage.drivers.parts import (
    ConsoleLogging,
    ConsoleType,
    CrashDumping,
    Diagnosable,
    Lasting,
    Pausable,
    Remembering,
    RemoteConsoles,
    Rescuable,
    Snapshottable,
    Suspendable,
    Watchful,
)
from moorage.drivers.testing.stand import DriverStand, part_of

_PATIENCE = 10.0


class GuestContract:
    def test_a_server_stands_still_while_it_is_paused(self, stand: DriverStand) -> None:
        part_of(stand.driver, Pausable)
        spec = stand.spec()
        identity = (spec.uuid, spec.node_uuid)
        stand.driver.spawn(spec)
        for _ in range(2):
            assert part_of(stand.driver, Pausable).pause(*identity) == PAUSED
        stand.restart()
        assert stand.driver.servers()[spec.uuid] == PAUSED
        for _ in range(2):
            assert part_of(stand.driver, Pausable).unpause(*identity) == RUNNING
        stand.driver.stop(*identity)
        for refused in (part_of(stand.driver, Pausable).pause, part_of(stand.driver, Pausable).unpause):
            with pytest.raises(DriverError):
                refused(*identity)
        assert stand.driver.power(*identity) == SHUT_DOWN
        stand.forget(spec)

    def test_a_server_that_comes_paused_waits_to_be_told(self, stand: DriverStand) -> None:
        if not stand.driver.nodes()[0].starts_paused:
            pytest.skip("its servers run at once")
        spec = msgspec.structs.replace(stand.spec(), paused=True)
        for _ in range(2):
            assert stand.driver.spawn(spec) == PAUSED
        assert part_of(stand.driver, Pausable).unpause(spec.uuid, spec.node_uuid) == RUNNING
        stand.forget(spec)

    def test_a_server_goes_on_after_it_was_suspended(self, stand: DriverStand) -> None:
        part_of(stand.driver, Suspendable)
        spec = stand.spec()
        identity = (spec.uuid, spec.node_uuid)
        stand.driver.spawn(spec)
        for _ in range(2):
            assert part_of(stand.driver, Suspendable).suspend(*identity) == SUSPENDED
        stand.restart()
        assert stand.driver.servers()[spec.uuid] == SUSPENDED
        for _ in range(2):
            assert part_of(stand.driver, Suspendable).resume(*identity) == RUNNING
        part_of(stand.driver, Suspendable).suspend(*identity)
        assert stand.driver.start(*identity) == RUNNING
        part_of(stand.driver, Suspendable).suspend(*identity)
        stand.forget(spec)

    def test_a_server_is_rescued_and_then_itself_again(self, stand: DriverStand) -> None:
        part_of(stand.driver, Rescuable)
        spec = stand.spec()
        stand.driver.spawn(spec)
        asked = msgspec.structs.replace(stand.rescue_spec(spec), work="7-1")
        for _ in range(2):
            assert part_of(stand.driver, Rescuable).rescue(asked) == RUNNING
        stand.restart()
        for _ in range(2):
            assert part_of(stand.driver, Rescuable).unrescue(spec.uuid, spec.node_uuid) == RUNNING
        part_of(stand.driver, Rescuable).rescue(msgspec.structs.replace(asked, work="8-1"))
        stand.forget(spec)

    def test_a_snapshot_changes_nothing_about_its_server(self, stand: DriverStand) -> None:
        part, spec = part_of(stand.driver, Snapshottable), stand.spec()
        identity = (spec.uuid, spec.node_uuid)
        if stand.waiting_image() is None:
            pytest.skip("there are no images")
        stand.driver.spawn(spec)
        for power in (RUNNING, SHUT_DOWN):
            image_id = stand.waiting_image()
            assert image_id is not None
            for _ in range(2):
                part.snapshot(*identity, image_id)
            assert stand.has_data(image_id)
            assert stand.driver.power(*identity) == power
            assert stand.driver.stop(*identity) == SHUT_DOWN
        stand.forget(spec)

    def test_only_a_running_server_can_be_interrupted(self, stand: DriverStand) -> None:
        part, spec = part_of(stand.driver, CrashDumping), stand.spec()
        if not stand.takes_interrupts:
            pytest.skip("its machines take none")
        stand.driver.spawn(spec)
        part.trigger_crash_dump(spec.uuid, spec.node_uuid)
        stand.driver.stop(spec.uuid, spec.node_uuid)
        with pytest.raises(DriverError):
            part.trigger_crash_dump(spec.uuid, spec.node_uuid)
        stand.forget(spec)

    def test_a_server_can_be_looked_at(self, stand: DriverStand) -> None:
        spec = stand.spec()
        identity = (spec.uuid, spec.node_uuid)
        stand.driver.spawn(spec)
        if isinstance(stand.driver, ConsoleLogging) and stand.keeps_logs:
            printed = stand.driver.console_log(*identity, None)
            assert len(stand.driver.console_log(*identity, 1).splitlines()) <= 1 <= len(printed) + 1
        if isinstance(stand.driver, Diagnosable):
            told = stand.driver.diagnostics(*identity)
            assert told["state"] == "running"
            assert told["num_cpus"] == len(told["cpu_details"])
            assert told["num_nics"] == len(told["nic_details"])
            assert told["num_disks"] == len(told["disk_details"])
            assert msgspec.json.decode(msgspec.json.encode(told)) == told
        if isinstance(stand.driver, RemoteConsoles):
            for console_type in stand.consoles:
                address = stand.driver.console(*identity, console_type)
                assert address.host
                assert address.port
                assert stand.driver.console(*identity, console_type) == address
            stand.driver.stop(*identity)
            assert not _consoles(stand.driver, spec)
        stand.forget(spec)

    def test_the_machine_of_a_server_stays_what_it_is(self, stand: DriverStand) -> None:
        part_of(stand.driver, Lasting)
        spec = stand.spec()
        stand.driver.spawn(spec)
        hardware = part_of(stand.driver, Lasting).hardware(spec.uuid, spec.node_uuid)
        stand.restart()
        assert part_of(stand.driver, Lasting).hardware(spec.uuid, spec.node_uuid) == hardware
        stand.forget(spec)
        stand.driver.spawn(msgspec.structs.replace(spec, hardware=hardware, work="2-1"))
        assert part_of(stand.driver, Lasting).hardware(spec.uuid, spec.node_uuid) == hardware
        stand.forget(spec)

    def test_what_a_server_is_can_be_told_after_a_restart(self, stand: DriverStand) -> None:
        part_of(stand.driver, Remembering)
        spec = stand.spec()
        with pytest.raises(DriverError):
            part_of(stand.driver, Remembering).recall(spec.uuid)
        stand.driver.spawn(spec)
        stand.restart()
        known = part_of(stand.driver, Remembering).recall(spec.uuid)
        assert (known.uuid, known.node_uuid) == (spec.uuid, spec.node_uuid)
        assert (known.name, known.project_id, known.user_id) == (spec.name, spec.project_id, spec.user_id)
        assert known.flavor.get("name") == spec.flavor.get("name")
        assert known.admin_password == ""
        stand.forget(spec)

    def test_whoever_watches_is_told(self, stand: DriverStand) -> None:
        part, spec = part_of(stand.driver, Watchful), stand.spec()
        told: list[tuple[str, int]] = []
        part.watch(lambda server_uuid, power: told.append((server_uuid, power)))
        stand.driver.spawn(spec)
        stand.driver.stop(spec.uuid, spec.node_uuid)
        deadline = time.monotonic() + _PATIENCE
        while (spec.uuid, SHUT_DOWN) not in told:
            assert time.monotonic() < deadline, "nobody was told that the server has stopped"
            time.sleep(0.02)
        stand.forget(spec)


def _consoles(driver: RemoteConsoles, spec: ServerSpec) -> list[ConsoleType]:
    """The types of which the server has one now."""
    found = []
    for wanted in ConsoleType:
        with suppress(DriverError):
            address = driver.console(spec.uuid, spec.node_uuid, wanted)
            assert address.host
            assert address.port
            found.append(wanted)
    return found
