"""A libvirtd that can't read what it has written down about a guest takes it for off; the guest runs on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from moorage.drivers.contract import RUNNING, SHUT_DOWN, DriverError, ServerSpec
from moorage.drivers.parts import Snapshottable, require
from tests.integration.libvirt.stand import LibvirtStand
from tests.lab.libvirt.hosts import LibvirtHost
from tests.support.processes import wait_until

_COPY_OF_NO_KIND = """
      <mirror type='file' file='/nowhere/delta.qcow2' format='qcow2' job=''>
        <format type='qcow2'/>
        <source file='/nowhere/delta.qcow2' index='5'/>
      </mirror>"""
"""As a libvirtd of 9.0 has it in a disk, from the end of a copy until that is put away."""


@pytest.fixture(autouse=True)
def nothing_is_written_down(stand: LibvirtStand) -> Iterator[None]:
    """Of a guest, once it is gone."""
    yield
    assert list(stand.settings.state_path.glob("*.xml")) == []


def spawned(stand: LibvirtStand) -> ServerSpec:
    spec = stand.spec(network=[stand.port()], config_drive=True)
    assert stand.driver.spawn(spec) == RUNNING
    return spec


def status_of(stand: LibvirtStand) -> Path:
    """What libvirtd has written down about the one guest that there is."""
    (found,) = stand.settings.state_path.glob("*.xml")
    return found


def spoil(stand: LibvirtStand, copy: str = _COPY_OF_NO_KIND) -> None:
    status = status_of(stand)
    before, disk, after = status.read_text().partition("<disk type='file' device='disk'>")
    assert disk
    status.write_text(f"{before}{disk}{copy}{after}")


def photograph(stand: LibvirtStand, spec: ServerSpec) -> None:
    image_id = stand.waiting_image()
    require(stand.driver, Snapshottable).snapshot(spec.uuid, spec.node_uuid, image_id)
    assert stand.has_data(image_id)


def forgotten() -> float | None:
    """As the gauge says that an alert looks at."""
    return REGISTRY.get_sample_value("moorage_libvirt_guests_forgotten")


def is_running(host: LibvirtHost, spec: ServerSpec) -> bool:
    """For libvirtd."""
    return host.run("virsh", "domstate", spec.uuid).strip() == "running"


def test_it_counts_as_running_and_libvirtd_has_it_again_after_a_restart(stand: LibvirtStand) -> None:
    host, spec = stand.host, spawned(stand)
    process, identity = host.guest_pids()[spec.uuid], (spec.uuid, spec.node_uuid)
    stand.close()
    host.kill_libvirtd()
    spoil(stand)
    host.start_libvirtd()
    assert not is_running(host, spec)
    stand.restart()
    assert stand.driver.servers() == {spec.uuid: RUNNING}
    assert forgotten() == 1
    assert stand.driver.start(*identity) == RUNNING
    with pytest.raises(DriverError, match="restart libvirtd"):
        photograph(stand, spec)
    host.kill_libvirtd(politely=True)
    host.start_libvirtd()
    assert is_running(host, spec)
    photograph(stand, spec)
    assert forgotten() == 0
    assert host.guest_pids() == {spec.uuid: process}
    assert host.starts(spec.uuid) == 1
    stand.forget(spec)


def test_it_is_not_forgotten_if_the_agent_is_there_when_libvirtd_dies(stand: LibvirtStand) -> None:
    host, spec = stand.host, spawned(stand)
    spoil(stand)
    host.kill_libvirtd()
    wait_until(lambda: "<mirror" not in status_of(stand).read_text(), "what is written down to be mended")
    host.start_libvirtd()
    assert is_running(host, spec)
    stand.forget(spec)


def test_it_is_started_again_only_when_its_process_has_ended(stand: LibvirtStand) -> None:
    host, spec = stand.host, spawned(stand)
    process, identity = host.guest_pids()[spec.uuid], (spec.uuid, spec.node_uuid)
    host.kill_libvirtd()
    status_of(stand).unlink()
    host.start_libvirtd()
    assert stand.driver.servers() == {spec.uuid: RUNNING}
    with pytest.raises(AssertionError, match="Failed to start domain"):
        host.run("virsh", "start", spec.uuid)
    with pytest.raises(AssertionError, match=r'Failed to get .*"write" lock'):
        host.run("qemu-img", "info", stand.settings.instances_path / spec.uuid / "disk")
    assert host.guest_pids() == {spec.uuid: process}
    assert stand.driver.stop(*identity) == SHUT_DOWN
    assert host.guest_pids() == {}
    assert forgotten() == 0
    assert stand.driver.start(*identity) == RUNNING
    assert is_running(host, spec)
    stand.forget(spec)


def test_its_server_can_be_destroyed(stand: LibvirtStand) -> None:
    spec = spawned(stand)
    stand.close()
    stand.host.kill_libvirtd()
    spoil(stand)
    stand.host.start_libvirtd()
    stand.restart()
    stand.driver.destroy(spec.uuid, spec.node_uuid)
    assert stand.leftovers() == []


def test_a_copy_that_nobody_makes_is_over_after_a_restart_of_libvirtd(stand: LibvirtStand) -> None:
    """Else no disk of the guest could ever be copied again."""
    host, spec = stand.host, spawned(stand)
    stand.close()
    host.kill_libvirtd()
    spoil(stand, _COPY_OF_NO_KIND.replace("job=''", "job='copy' ready='abort'"))
    host.start_libvirtd()
    stand.restart()
    with pytest.raises(DriverError, match="restart libvirtd"):
        photograph(stand, spec)
    host.kill_libvirtd(politely=True)
    wait_until(lambda: "<mirror" not in status_of(stand).read_text(), "what is written down to be mended")
    host.start_libvirtd()
    photograph(stand, spec)
    assert host.starts(spec.uuid) == 1
    stand.forget(spec)
