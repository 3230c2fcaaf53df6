"""An agent that is killed in the middle of a call goes on after its restart, or undoes: nothing is left."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.drivers.contract import RUNNING, SHUT_DOWN, SUSPENDED, DriverError, ServerSpec
from moorage.drivers.parts import (
    Diagnosable,
    Movable,
    Rebuildable,
    ResizableInPlace,
    Snapshottable,
    Suspendable,
    require,
)
from tests.integration.libvirt.stand import LibvirtStand
from tests.integration.libvirt.worker import Worker

KILLS = int(os.environ.get("MOORAGE_GUEST_KILLS", "3"))
"""Of each kind of call."""
_LONGEST = 1.2
"""Seconds within which most calls end on a machine that has nothing else to do."""


@pytest.fixture
def worker(stand: LibvirtStand) -> Iterator[Worker]:
    made = Worker(stand)
    yield made
    made.close()


def kill_in_the_middle(worker: Worker, call: str, *arguments: object) -> None:
    pid, seconds = worker.begin(call, *arguments), random.uniform(0.0, _LONGEST)
    print(f"{call} is killed after {seconds:.3f} s")
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    assert worker.said() in ("killed", "ended 0")


def spawned(stand: LibvirtStand) -> ServerSpec:
    spec = stand.spec(network=[stand.port()], config_drive=True)
    assert stand.driver.spawn(spec) == RUNNING
    return spec


def test_a_spawn_goes_on_or_is_undone(stand: LibvirtStand, worker: Worker) -> None:
    for number in range(KILLS):
        spec = stand.spec(network=[stand.port()], config_drive=True)
        kill_in_the_middle(worker, "spawn", spec)
        if number % 2:
            assert stand.driver.spawn(spec) == RUNNING
            assert list(stand.host.guest_pids()) == [spec.uuid]
        stand.driver.destroy(spec.uuid, spec.node_uuid)
        assert stand.leftovers() == []


def test_a_destroy_goes_on(stand: LibvirtStand, worker: Worker) -> None:
    for _ in range(KILLS):
        spec = spawned(stand)
        kill_in_the_middle(worker, "destroy", spec.uuid, spec.node_uuid)
        stand.driver.destroy(spec.uuid, spec.node_uuid)
        assert stand.leftovers() == []


def test_a_rebuild_goes_on(stand: LibvirtStand, worker: Worker) -> None:
    spec = spawned(stand)
    for number in range(KILLS):
        asked = msgspec.structs.replace(spec, work=f"{number + 2}-1", power_on=bool(number % 2))
        kill_in_the_middle(worker, "rebuild", asked)
        power = require(stand.driver, Rebuildable).rebuild(asked)
        assert power == (RUNNING if asked.power_on else SHUT_DOWN)
    stand.forget(spec)


def test_a_resize_in_place_goes_on_or_is_undone(stand: LibvirtStand, worker: Worker) -> None:
    spec = spawned(stand)
    identity = (spec.uuid, spec.node_uuid)
    resizing = require(stand.driver, ResizableInPlace)
    for number in range(KILLS):
        work, vcpus = f"{number + 2}-1", 2 + number
        require(stand.driver, Movable).hand_over(*identity)
        asked = msgspec.structs.replace(spec, flavor={**spec.flavor, "vcpus": vcpus, "swap": 1}, work=work)
        kill_in_the_middle(worker, "resize_in_place", asked)
        if number % 2 == 0:
            assert resizing.resize_in_place(asked) == RUNNING
            kill_in_the_middle(worker, "keep_resize", *identity)
            resizing.keep_resize(*identity)
            assert stand.driver.power(*identity) == RUNNING
        else:
            kill_in_the_middle(worker, "undo_resize", *identity)
            resizing.undo_resize(*identity)
            assert stand.driver.start(*identity) == RUNNING
        assert not (stand.settings.instances_path / spec.uuid / "before").exists()
        wanted = vcpus if number % 2 == 0 else vcpus - 1
        assert require(stand.driver, Diagnosable).diagnostics(*identity)["num_cpus"] == wanted
    stand.forget(spec)


def test_a_snapshot_begins_anew_and_its_guest_runs_on(stand: LibvirtStand, worker: Worker) -> None:
    spec = spawned(stand)
    process = stand.host.guest_pids()[spec.uuid]
    for _ in range(KILLS):
        image_id = stand.waiting_image()
        kill_in_the_middle(worker, "snapshot", spec.uuid, spec.node_uuid, image_id)
        require(stand.driver, Snapshottable).snapshot(spec.uuid, spec.node_uuid, image_id)
        assert stand.has_data(image_id)
        directory = stand.settings.instances_path / spec.uuid
        assert [path.name for path in directory.iterdir() if "snapshot" in path.name] == []
    assert stand.host.guest_pids()[spec.uuid] == process
    stand.forget(spec)


def test_a_snapshot_that_is_uploaded_leaves_nothing_either(stand: LibvirtStand) -> None:
    """Of an agent that was killed right after, before it cleared its copy away."""
    spec = spawned(stand)
    snapshot = partial(
        require(stand.driver, Snapshottable).snapshot, spec.uuid, spec.node_uuid, stand.waiting_image()
    )
    snapshot()
    left = stand.settings.instances_path / spec.uuid / f".snapshot-.{spec.node_uuid}.811bddf6"
    left.mkdir()
    (left / "whole.qcow2").write_bytes(b"a copy")
    snapshot()
    assert not left.exists()
    stand.forget(spec)


def test_a_copy_that_libvirtd_begins_late_is_ended(
    stand: LibvirtStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed agent had asked for it, and it was not there when the next attempt looked."""
    from moorage.drivers.libvirt.storage import qemu_img

    spec, image_id, make = spawned(stand), stand.waiting_image(), qemu_img.create_overlay

    def make_late(path: Path, *words: Any) -> None:
        make(path, *words)
        late = path.with_name("late.qcow2")
        make(late, *words)
        how = ("--shallow", "--reuse-external", "--transient-job", "--format", "qcow2")
        stand.host.run("virsh", "blockcopy", spec.uuid, "vda", "--dest", late, *how)

    monkeypatch.setattr(qemu_img, "create_overlay", make_late)
    require(stand.driver, Snapshottable).snapshot(spec.uuid, spec.node_uuid, image_id)
    assert stand.has_data(image_id)
    stand.forget(spec)


def test_a_suspend_goes_on(stand: LibvirtStand, worker: Worker) -> None:
    spec = spawned(stand)
    identity = (spec.uuid, spec.node_uuid)
    for _ in range(KILLS):
        kill_in_the_middle(worker, "suspend", *identity)
        assert require(stand.driver, Suspendable).suspend(*identity) == SUSPENDED
        assert require(stand.driver, Suspendable).resume(*identity) == RUNNING
    stand.forget(spec)


def test_libvirtd_may_be_killed_and_the_guest_does_not_notice(stand: LibvirtStand) -> None:
    spec = spawned(stand)
    process = stand.host.guest_pids()[spec.uuid]
    stand.host.kill_libvirtd()
    with pytest.raises(DriverError):
        stand.driver.servers()
    stand.host.start_libvirtd()
    assert stand.driver.servers() == {spec.uuid: RUNNING}
    stand.restart()
    assert stand.host.guest_pids() == {spec.uuid: process}
    stand.forget(spec)


def test_libvirtd_may_be_killed_in_the_middle_of_a_call(stand: LibvirtStand) -> None:
    """The call goes on when it is back, or fails; either way a destroy leaves nothing."""
    for number in range(2 * KILLS):
        spec = stand.spec(network=[stand.port()], config_drive=True)
        call: Callable[[], object] = partial(stand.driver.spawn, spec)
        if number % 2:
            stand.driver.spawn(spec)
            snapshot = require(stand.driver, Snapshottable).snapshot
            call = partial(snapshot, spec.uuid, spec.node_uuid, stand.waiting_image())
        with ThreadPoolExecutor(1) as pool:
            seconds = random.uniform(0.0, _LONGEST)
            print(f"libvirtd is killed {seconds:.3f} s after the call began")
            ended = pool.submit(call)
            time.sleep(seconds)
            stand.host.kill_libvirtd()
            stand.host.start_libvirtd()
            assert ended.exception(60) is None or isinstance(ended.exception(), DriverError)
        if number % 2:
            assert stand.driver.power(spec.uuid, spec.node_uuid) == RUNNING, "a snapshot harms no guest"
        stand.driver.destroy(spec.uuid, spec.node_uuid)
        if list(stand.settings.state_path.glob("*.moorage-stuck")):  # the driver asks an operator for it
            stand.host.kill_libvirtd(politely=True)
            stand.host.start_libvirtd()
            stand.tidy_up()
        assert stand.leftovers() == []


def test_domains_without_our_mark_are_left_alone(stand: LibvirtStand) -> None:
    spec = spawned(stand)
    xml = stand.host.run("virsh", "dumpxml", spec.uuid, "--inactive")
    stand.driver.destroy(spec.uuid, spec.node_uuid)
    path = stand.directory / "stranger.xml"
    path.write_text(re.sub("<metadata.*</metadata>", "", xml, flags=re.DOTALL))
    stand.host.run("virsh", "define", path)
    try:
        assert stand.driver.servers() == {}
        for ask in (stand.driver.start, stand.driver.power, stand.driver.destroy):
            with pytest.raises(DriverError):
                ask(spec.uuid, spec.node_uuid)
        assert spec.uuid in stand.host.run("virsh", "list", "--all", "--uuid")
    finally:
        stand.host.run("virsh", "undefine", spec.uuid)
