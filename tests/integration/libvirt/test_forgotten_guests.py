"""A libvirtd that can't read what it has written down about a guest takes it for off; the guest runs on."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.drivers.contract import RUNNING, SHUT_DOWN, DriverError, ServerSpec
from moorage.drivers.parts import Snapshottable, require
from tests.integration.libvirt.stand import DirectoryImages, LibvirtStand, empty_image
from tests.lab.libvirt.hosts import LibvirtHost, LibvirtLab

_COPY_OF_NO_KIND = """
      <mirror type='file' file='/nowhere/delta.qcow2' format='qcow2' job=''>
        <format type='qcow2'/>
        <source file='/nowhere/delta.qcow2' index='5'/>
      </mirror>"""
"""As a libvirtd of 9.0 has it in a disk, from the end of a copy until that is put away."""


@pytest.fixture
def stand(lab: LibvirtLab, tmp_path: Path) -> Iterator[LibvirtStand]:
    images = DirectoryImages(tmp_path / "images")
    image_id = images.add(empty_image(tmp_path), "qcow2")
    made = LibvirtStand(lab.hosts["h1"], tmp_path, images, image_id)
    yield made
    made.driver.close()
    assert made.leftovers() == []
    assert list(made.settings.state_path.glob("*.xml")) == []


def spawned(stand: LibvirtStand) -> ServerSpec:
    spec = stand.spec(network=[stand.port()], config_drive=True)
    assert stand.driver.spawn(spec) == RUNNING
    return spec


def status_of(stand: LibvirtStand) -> Path:
    """What libvirtd has written down about the one guest that there is."""
    (found,) = stand.settings.state_path.glob("*.xml")
    return found


def spoil(stand: LibvirtStand) -> None:
    status = status_of(stand)
    before, disk, after = status.read_text().partition("<disk type='file' device='disk'>")
    assert disk
    status.write_text(f"{before}{disk}{_COPY_OF_NO_KIND}{after}")


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
    assert stand.driver.start(*identity) == RUNNING
    with pytest.raises(DriverError, match="restart libvirtd"):
        require(stand.driver, Snapshottable).snapshot(*identity, stand.waiting_image())
    host.kill_libvirtd(politely=True)
    host.start_libvirtd()
    assert is_running(host, spec)
    image_id = stand.waiting_image()
    require(stand.driver, Snapshottable).snapshot(*identity, image_id)
    assert stand.has_data(image_id)
    assert host.guest_pids() == {spec.uuid: process}
    assert host.starts(spec.uuid) == 1
    stand.forget(spec)


def test_it_is_not_forgotten_if_the_agent_is_there_when_libvirtd_dies(stand: LibvirtStand) -> None:
    host, spec = stand.host, spawned(stand)
    host.kill_libvirtd()
    spoil(stand)
    with pytest.raises(DriverError):
        stand.driver.servers()
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
    by_hand = subprocess.run(host.command("virsh", "start", spec.uuid), check=False, capture_output=True)
    assert b'Failed to get "write" lock' in by_hand.stderr
    assert host.guest_pids() == {spec.uuid: process}
    assert stand.driver.stop(*identity) == SHUT_DOWN
    assert host.guest_pids() == {}
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
