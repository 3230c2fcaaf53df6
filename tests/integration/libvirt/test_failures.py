"""What goes wrong on a real host: who is told, and what is left."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.drivers.contract import RUNNING, SHUT_DOWN, DriverError, ServerSpec
from moorage.drivers.libvirt.vifs.contract import Vif
from moorage.drivers.parts import Pluggable, Rebuildable, Rescuable, Watchful, require
from tests.integration.libvirt.stand import LibvirtStand, empty_image
from tests.support.processes import wait_until


@pytest.fixture
def bad_image(stand: LibvirtStand) -> Mapping[str, Any]:
    path = stand.directory / "bad"
    path.write_bytes(b"no disk at all")
    return {"id": stand.images.add(path, "qcow2"), "properties": {}}


def test_a_spawn_that_fails_leaves_nothing(stand: LibvirtStand, bad_image: dict[str, Any]) -> None:
    spec = msgspec.structs.replace(stand.spec(network=[stand.port()]), image=bad_image)
    with pytest.raises(DriverError) as failed:
        stand.driver.spawn(spec)
    assert not failed.value.retry_elsewhere
    assert stand.leftovers() == []


def test_a_spawn_that_libvirt_refuses_is_for_another_host(stand: LibvirtStand) -> None:
    spec = stand.spec(network=[stand.port()], properties={"hw_machine_type": "abacus"})
    with pytest.raises(DriverError) as failed:
        stand.driver.spawn(spec)
    assert failed.value.retry_elsewhere
    assert stand.leftovers() == []


def test_an_image_that_is_larger_than_the_flavors_disk_is_refused_everywhere(stand: LibvirtStand) -> None:
    image_id = stand.images.add(empty_image(stand.directory, "2G"), "qcow2")
    with pytest.raises(DriverError, match=r"2\.0 GiB") as failed:
        stand.driver.spawn(stand.spec(image_id=image_id))
    assert not failed.value.retry_elsewhere
    spec = stand.spec(image_id=image_id, flavor={"disk": 0})
    assert stand.driver.spawn(spec) == RUNNING, "without a size, it is as large as its image"
    stand.forget(spec)


def test_a_server_is_not_harmed_by_an_image_that_can_not_replace_its_own(
    stand: LibvirtStand, bad_image: dict[str, Any]
) -> None:
    spec = stand.spec()
    stand.driver.spawn(spec)
    process = stand.host.guest_pids()[spec.uuid]
    bad = msgspec.structs.replace(spec, image=bad_image, work="2-1")
    for ask in (require(stand.driver, Rebuildable).rebuild, require(stand.driver, Rescuable).rescue):
        with pytest.raises(DriverError):
            ask(bad)
    assert stand.host.guest_pids() == {spec.uuid: process}
    stand.forget(spec)


def test_a_port_that_can_not_be_plugged_stays_away(
    stand: LibvirtStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, port = stand.spec(), stand.port()
    stand.driver.spawn(spec)

    def fail(server: ServerSpec, port: Mapping[str, Any]) -> Vif:
        raise DriverError("no cable")

    with monkeypatch.context() as patched:
        patched.setattr(stand.taps, "plug", fail)
        with pytest.raises(DriverError, match="no cable"):
            require(stand.driver, Pluggable).attach_interface(spec.uuid, spec.node_uuid, port)
    assert stand.driver.reboot(spec.uuid, spec.node_uuid, hard=True) == RUNNING
    assert stand.taps.plugged() == []
    stand.forget(spec)


def test_names_of_domains_may_be_taken_by_another_cloud(stand: LibvirtStand) -> None:
    first, second = (stand.spec(instance_name="instance-00000001") for _ in range(2))
    for spec in (first, second):
        assert stand.driver.spawn(spec) == RUNNING
        assert stand.driver.reboot(spec.uuid, spec.node_uuid, hard=True) == RUNNING
    names = stand.host.run("virsh", "list", "--name").split()
    assert sorted(names) == ["instance-00000001", f"instance-00000001-{second.uuid}"]
    for spec in (first, second):
        stand.forget(spec)


def test_taps_that_a_restart_of_the_host_took_away_are_made_again(stand: LibvirtStand) -> None:
    spec = stand.spec(network=[stand.port()])
    stand.driver.spawn(spec)
    stand.host.kill_guest(spec.uuid)
    for tap in stand.taps.plugged():
        stand.host.run("ip", "link", "del", tap, check=False)
    stand.restart()
    assert stand.driver.start(spec.uuid, spec.node_uuid) == RUNNING
    assert len(stand.taps.plugged()) == 1
    stand.forget(spec)


@pytest.mark.parametrize("call", ["stop", "suspend", "snapshot", "rebuild", "rescue"])
def test_a_destroy_wins_over_whatever_is_at_work(stand: LibvirtStand, call: str) -> None:
    """Also over a guest that takes its time to shut down."""
    patient = stand.spec(properties={"os_shutdown_timeout": "3600"})
    stand.driver.spawn(patient)
    identity = (patient.uuid, patient.node_uuid)
    again = msgspec.structs.replace(patient, work="2-1")
    arguments: dict[str, tuple[Any, ...]] = {
        "snapshot": (*identity, stand.waiting_image()),
        "rebuild": (again,),
        "rescue": (again,),
    }
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(getattr(stand.driver, call), *arguments.get(call, identity))
        time.sleep(0.2)
        stand.driver.destroy(*identity)
        assert ended.exception(30) is None or isinstance(ended.exception(), DriverError)
    stand.driver.destroy(*identity)
    assert stand.leftovers() == []


def test_that_a_guest_was_killed_is_noticed(stand: LibvirtStand) -> None:
    spec, told = stand.spec(), []
    require(stand.driver, Watchful).watch(lambda server_uuid, power: told.append((server_uuid, power)))
    stand.driver.spawn(spec)
    stand.host.kill_guest(spec.uuid)
    wait_until(lambda: (spec.uuid, SHUT_DOWN) in told, "the news", 5)
    assert stand.driver.servers() == {spec.uuid: SHUT_DOWN}
    assert stand.driver.start(spec.uuid, spec.node_uuid) == RUNNING
    stand.forget(spec)


def test_a_driver_that_ends_hangs_up(stand: LibvirtStand) -> None:
    stand.driver.servers()
    before = _sockets()
    for _ in range(3):
        stand.restart()
        stand.driver.servers()
    assert _sockets() <= before


def _sockets() -> int:
    found = 0
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found += os.readlink(path).startswith("socket:")
    return found
