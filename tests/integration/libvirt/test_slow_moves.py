"""Live migrations that take their time: called off, hurried, and gone on with after an agent was killed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage.drivers.contract import NO_STATE, RUNNING, DriverError, Parcel, ServerSpec
from moorage.drivers.parts import ARRIVED
from tests.integration.libvirt import mover
from tests.integration.libvirt.moving import Two, carried, goes_on, log, runs, two
from tests.lab.libvirt import tiny_guest
from tests.lab.libvirt.hosts import LibvirtLab
from tests.support.processes import wait_until

_SUSPENDED, _FOR_POST_COPY = 3, 7
"""An event of libvirt's, and its detail."""
EITHER = pytest.mark.parametrize("both", ["shared", "copied"], indirect=True)
SHARED = pytest.mark.parametrize("both", ["shared"], indirect=True)
COPIED = pytest.mark.parametrize("both", ["copied"], indirect=True)
POST_COPY = pytest.mark.parametrize("both", ["post-copy"], indirect=True)


@pytest.fixture
def both(request: pytest.FixtureRequest, pair: LibvirtLab, tmp_path: Path) -> Iterator[Two]:
    """A server on the first of two hosts, between which there is not much room: on its way it stays there."""
    moves = {"bandwidth": 1, "post_copy": request.param == "post-copy"}
    with two(pair, tmp_path, shared=request.param != "copied", **moves) as made:
        made.server = made.one.spec(config_drive=True)
        made.one.driver.spawn(made.server)
        runs(made.one, made.server, 1)
        yield made
        for stand in (made.one, made.two):
            stand.driver.destroy(made.server.uuid, stand.driver.nodes()[0].uuid)
        assert made.one.leftovers() == made.two.leftovers() == []


class Migration:
    """One that is at work in a thread of its own."""

    def __init__(self, both: Two) -> None:
        self._both = both
        self.there = both.spec(both.two, both.server)
        self.expected = carried(both.two.moves.expect(self.there))
        self._ended: list[Parcel | DriverError] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> Migration:
        self._thread.start()
        wait_until(
            lambda: is_on_its_way(self._both, self.there) or bool(self._ended),
            "a guest on its way",
            timeout=60,
        )
        assert not self._ended, self._ended[0]
        return self

    def _has_begun(self) -> bool:
        return bool(self._ended) or is_on_its_way(self._both, self.there)

    def outcome(self) -> Parcel | DriverError:
        self._thread.join(60)
        assert self._ended, "the migration does not end"
        return self._ended[0]

    def _run(self) -> None:
        both = self._both
        try:
            parcel = both.one.moves.live_migrate(both.server.uuid, both.server.node_uuid, self.expected)
            self._ended.append(carried(parcel))
        except DriverError as error:
            self._ended.append(error)


def is_on_its_way(both: Two, there: ServerSpec) -> bool:
    """Its memory is being sent: before that, there is no migration to call off or hurry."""
    stats = both.one.host.run("virsh", "domjobinfo", there.uuid, check=False)
    if "Memory processed" not in stats:
        return False
    assert both.two.driver.power(there.uuid, there.node_uuid) == NO_STATE
    return True


def stayed(both: Two, migration: Migration) -> None:
    """It is where it was, counts on, and nothing is left at its destination."""
    server = both.server
    wait_until(lambda: both.runs_on(server) == ["h1"], "one guest", timeout=60)
    both.two.driver.destroy(server.uuid, migration.there.node_uuid)
    assert both.two.leftovers() == ([] if not both.is_shared else [server.uuid])
    assert both.one.driver.power(server.uuid, server.node_uuid) == RUNNING
    goes_on(both.one, server, tiny_guest.tick(log(both.one, server)))
    assert tiny_guest.boots(log(both.one, server)) == 1


def arrived(both: Two, migration: Migration, before: int) -> None:
    server = both.server
    assert both.runs_on(server) == ["h2"]
    assert both.two.moves.take_over(migration.there, {ARRIVED: True}) == RUNNING
    both.one.driver.destroy(server.uuid, server.node_uuid)
    goes_on(both.two, server, before)
    assert tiny_guest.boots(log(both.two, server)) == 1


@EITHER
def test_one_is_called_off_and_the_next_one_hurried(both: Two) -> None:
    server, driver = both.server, both.one.driver
    migration = Migration(both).begin()
    wait_until(lambda: driver.progress().get(server.uuid, 0) > 0, "progress", timeout=60)
    both.one.moves.abort_live_migration(server.uuid)
    assert "aborted" in str(migration.outcome())
    stayed(both, migration)

    migration = Migration(both).begin()
    before = tiny_guest.tick(log(both.one, server))
    both.one.moves.hurry_live_migration(server.uuid)
    assert migration.outcome() == {ARRIVED: True}
    arrived(both, migration, before)
    assert driver.progress() == {}


@contextmanager
def userfaultfd(value: str) -> Iterator[None]:
    """For accounts other than root, of which QEMU's is one."""
    setting = Path("/proc/sys/vm/unprivileged_userfaultfd")
    try:
        before = setting.read_text()
        setting.write_text(value)
    except OSError as error:
        pytest.skip(f"the kernel's settings can't be changed here: {error}")
    try:
        yield
    finally:
        setting.write_text(before)


@POST_COPY
@pytest.mark.parametrize("allowed", ["1", "0"])
def test_one_goes_on_at_its_destination_before_all_of_it_is_there(both: Two, allowed: str) -> None:
    """Where the kernel does not let it, it moves all the same, and holds still when it is to hurry."""
    from moorage.drivers.libvirt.driver import LibvirtDriver

    told: list[tuple[int, int]] = []
    assert isinstance(both.one.driver, LibvirtDriver)
    connection = both.one.driver.backend.domains.connection
    connection.on_lifecycle(lambda _, __, event, detail: told.append((event, detail)))
    with userfaultfd(allowed):
        migration = Migration(both).begin()
        before = tiny_guest.tick(log(both.one, both.server))
        both.one.moves.hurry_live_migration(both.server.uuid)
        assert migration.outcome() == {ARRIVED: True}
    assert ((_SUSPENDED, _FOR_POST_COPY) in told) == (allowed == "1")
    arrived(both, migration, before)


@SHARED
def test_who_is_not_expected_any_more_is_not_sent(both: Two) -> None:
    """A source that was frozen, or cut off, until its destination was told to forget the server."""
    server, migration = both.server, Migration(both)
    both.two.driver.destroy(server.uuid, migration.there.node_uuid)
    with pytest.raises(DriverError, match="does not expect"):
        both.one.moves.live_migrate(server.uuid, server.node_uuid, migration.expected)
    stayed(both, migration)


@COPIED
def test_an_agent_that_is_killed_in_the_middle_goes_on_with_it(both: Two) -> None:
    """Libvirt does not stop for that; whoever comes next finds what it is at, or that it is done."""
    server, migration = both.server, Migration(both)
    with mover.moving(both.one, server, migration.expected) as process:
        wait_until(lambda: is_on_its_way(both, migration.there), "a guest on its way", timeout=60)
        process.send_signal(signal.SIGKILL)
    migration.begin()
    before = tiny_guest.tick(log(both.one, server))
    both.one.moves.hurry_live_migration(server.uuid)
    assert migration.outcome() == {ARRIVED: True}
    arrived(both, migration, before)


@SHARED
def test_a_guest_that_has_gone_while_its_agent_was_dead_is_found(both: Two) -> None:
    server, migration = both.server, Migration(both)
    with mover.moving(both.one, server, migration.expected) as process:
        wait_until(lambda: is_on_its_way(both, migration.there), "a guest on its way", timeout=60)
        before = tiny_guest.tick(log(both.one, server))
        process.send_signal(signal.SIGKILL)
    both.one.host.run("virsh", "suspend", server.uuid)  # then libvirt is soon done with it
    wait_until(lambda: both.runs_on(server) == ["h2"], "a guest that has gone", timeout=60)
    for _ in range(2):
        parcel = both.one.moves.live_migrate(server.uuid, server.node_uuid, migration.expected)
        assert parcel == {ARRIVED: True}
    with pytest.raises(DriverError):
        both.one.driver.start(server.uuid, server.node_uuid)
    arrived(both, migration, before)


@EITHER
def test_an_agent_that_was_frozen_does_no_harm_when_it_wakes_up(both: Two) -> None:
    """Meanwhile the server has arrived, was taken over, and has gone on to live there without it."""
    server, migration = both.server, Migration(both)
    with mover.moving(both.one, server, migration.expected) as process:
        wait_until(lambda: is_on_its_way(both, migration.there), "a guest on its way", timeout=60)
        before = tiny_guest.tick(log(both.one, server))
        process.send_signal(signal.SIGSTOP)
        both.one.host.run("virsh", "suspend", server.uuid)
        wait_until(lambda: both.runs_on(server) == ["h2"], "a guest that has gone", timeout=60)
        assert both.two.driver.power(server.uuid, migration.there.node_uuid) == RUNNING
        arrived(both, migration, before)
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=60)
    assert both.runs_on(server) == ["h2"]
    goes_on(both.two, server, tiny_guest.tick(log(both.two, server)))
    assert both.one.leftovers() == ([] if not both.is_shared else [server.uuid])


@COPIED
@pytest.mark.parametrize("end", ["one", "two"], ids=["of the source", "of the destination"])
def test_a_libvirtd_that_is_killed_leaves_the_guest_where_it_was(both: Two, end: str) -> None:
    migration, stand = Migration(both).begin(), both.one if end == "one" else both.two
    stand.host.kill_libvirtd()
    stand.host.start_libvirtd()
    outcome: Any = migration.outcome()
    assert isinstance(outcome, DriverError)
    stayed(both, migration)
