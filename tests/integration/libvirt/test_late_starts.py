"""A call that makes a guest run is delayed right behind the look at its permit: libvirtd refuses it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from moorage.core.clock import uptime
from moorage.drivers.contract import (
    PAUSED,
    RUNNING,
    SHUT_DOWN,
    DriverError,
    ServerSpec,
    StartNotPermittedError,
)
from moorage.drivers.parts import Fenced, Rescuable, StartPermit, require
from tests.integration.libvirt.late_worker import (
    BEFORE_CREATE,
    BEFORE_RESUME,
    NEVER,
    NOT_PERMITTED,
    PERMITTED,
    LateWorker,
)
from tests.integration.libvirt.stand import DirectoryImages, LibvirtStand, empty_image
from tests.lab.libvirt.hosts import CLIENT_TIMEOUT, LibvirtLab
from tests.support.processes import wait_until

_LASTS = 2 * CLIENT_TIMEOUT + 2
"""Seconds for which a permit is given: long enough for a call that is not late."""
_TOO_LONG = CLIENT_TIMEOUT + 3


@pytest.fixture(scope="module")
def stand(lab: LibvirtLab) -> Iterator[LibvirtStand]:
    directory = lab.directory / "stand"
    directory.mkdir()
    images = DirectoryImages(directory / "images")
    image_id = images.add(empty_image(directory), "qcow2")
    images.save()
    made = LibvirtStand(lab.hosts["h1"], directory, images, image_id)
    yield made
    made.driver.close()
    assert made.leftovers() == []


@pytest.fixture
def server(stand: LibvirtStand) -> Iterator[ServerSpec]:
    """It is off."""
    spec = stand.spec(power_on=False)
    assert stand.driver.spawn(spec) == SHUT_DOWN
    yield spec
    stand.driver.destroy(spec.uuid, spec.node_uuid)


def power(stand: LibvirtStand, server: ServerSpec) -> int:
    return stand.driver.power(server.uuid, server.node_uuid)


def stopped(stand: LibvirtStand, server: ServerSpec, behind: int, seconds: float = _LASTS) -> LateWorker:
    made = LateWorker(stand, server.uuid, stop_behind=behind, seconds=seconds)
    wait_until(lambda: made.is_stopped or made.has_ended, "it to stop", 60)
    assert not made.has_ended
    return made


def test_who_was_stopped_before_the_guest_is_made_makes_none(stand: LibvirtStand, server: ServerSpec) -> None:
    late = stopped(stand, server, BEFORE_CREATE)
    time.sleep(_TOO_LONG)
    late.go_on()
    assert late.ended() == NOT_PERMITTED
    assert (power(stand, server), stand.host.starts(server.uuid)) == (SHUT_DOWN, 0)


def test_who_was_stopped_before_it_runs_does_not_set_it_going(
    stand: LibvirtStand, server: ServerSpec
) -> None:
    """It stands still, which does nothing to a network or a disk, until somebody removes it."""
    late = stopped(stand, server, BEFORE_RESUME)
    time.sleep(_TOO_LONG)
    late.go_on()
    assert late.ended() == NOT_PERMITTED
    assert power(stand, server) == PAUSED


def test_libvirtd_has_refused_the_call_itself(stand: LibvirtStand, server: ServerSpec) -> None:
    """The permit lasts on: what is stopped for longer than libvirtd waits asks over a new connection, and
    looks at the permit before, as it did the first time."""
    lost = stand.host.directory / "log" / "libvirtd.log"
    before = lost.read_text().count("keepalive timeout") if lost.exists() else 0
    late = stopped(stand, server, BEFORE_CREATE, seconds=600)
    time.sleep(_TOO_LONG)
    late.go_on()
    assert late.ended() == PERMITTED
    assert (power(stand, server), stand.host.starts(server.uuid)) == (RUNNING, 1)
    assert lost.read_text().count("keepalive timeout") > before


def test_a_libvirtd_that_is_late_itself_makes_a_guest_that_stands_still(
    stand: LibvirtStand, server: ServerSpec
) -> None:
    late = stopped(stand, server, BEFORE_CREATE, seconds=CLIENT_TIMEOUT + 1)
    assert stand.host.libvirtd is not None
    daemons = stand.host.daemon_pids()
    for pid in daemons:
        os.kill(pid, signal.SIGSTOP)
    try:
        late.go_on()
        time.sleep(3)
    finally:
        for pid in (stand.host.libvirtd.pid, *daemons):  # who waits for it stops with it
            os.kill(pid, signal.SIGCONT)
    assert late.ended() == NOT_PERMITTED
    wait_until(lambda: power(stand, server) == PAUSED, "the guest", 30)


def test_who_is_not_late_starts_it(stand: LibvirtStand, server: ServerSpec) -> None:
    made = LateWorker(stand, server.uuid, stop_behind=NEVER, seconds=60)
    assert made.ended() == PERMITTED
    assert power(stand, server) == RUNNING


@pytest.mark.parametrize("call", ["start", "reboot", "resume", "spawn", "rescue", "unrescue"])
def test_nothing_runs_without_a_permit(stand: LibvirtStand, server: ServerSpec, call: str) -> None:
    driver, rescue = stand.driver, partial(stand.rescue_spec, server)
    calls: dict[str, Callable[[], object]] = {
        "reboot": lambda: driver.reboot(server.uuid, server.node_uuid, hard=True),
        "spawn": lambda: driver.spawn(stand.spec()),
        "rescue": lambda: require(driver, Rescuable).rescue(rescue()),
    }
    usual: Callable[[], object] = partial(getattr(driver, call), server.uuid, server.node_uuid)
    require(driver, Fenced).start_by_permit(lambda _: None)
    try:
        with pytest.raises(StartNotPermittedError):
            calls.get(call, usual)()
    finally:
        stand.restart()
    for uuid in stand.driver.servers():
        assert stand.driver.power(uuid, server.node_uuid) in (SHUT_DOWN, PAUSED)
        if uuid != server.uuid:
            stand.driver.destroy(uuid, server.node_uuid)
    assert stand.host.starts(server.uuid) == 0


def test_a_host_whose_silence_ends_sooner_than_libvirts_patience_says_so(
    stand: LibvirtStand, server: ServerSpec
) -> None:
    now = uptime()
    require(stand.driver, Fenced).start_by_permit(lambda _: StartPermit(now, now + CLIENT_TIMEOUT - 1))
    try:
        with pytest.raises(DriverError, match=r"service_down_time.*client_timeout"):
            stand.driver.start(server.uuid, server.node_uuid)
    finally:
        stand.restart()


def test_what_was_left_standing_still_by_one_that_died_is_set_going(
    stand: LibvirtStand, server: ServerSpec
) -> None:
    stopped(stand, server, BEFORE_RESUME).kill()
    assert power(stand, server) == PAUSED
    assert stand.driver.start(server.uuid, server.node_uuid) == RUNNING
