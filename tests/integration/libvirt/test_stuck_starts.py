"""A libvirtd that was killed right before it started a QEMU leaves a domain that no call can end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.drivers.contract import RUNNING, SHUT_DOWN, DriverError, ServerSpec
from tests.integration.libvirt.stand import DirectoryImages, LibvirtStand, empty_image
from tests.lab.libvirt.hosts import LibvirtHost, LibvirtLab
from tests.support.processes import wait_until

_ABOUT_TO_START = (
    "<domstatus state='paused' reason='starting up' pid='0'>\n"
    "  <job type='none' async='start' phase='none' flags='0x0'/>"
)


@pytest.fixture
def stand(lab: LibvirtLab, tmp_path: Path) -> Iterator[LibvirtStand]:
    images = DirectoryImages(tmp_path / "images")
    image_id = images.add(empty_image(tmp_path), "qcow2")
    made = LibvirtStand(lab.hosts["h1"], tmp_path, images, image_id)
    yield made
    made.driver.close()
    assert made.leftovers() == []


def restart(host: LibvirtHost) -> None:
    host.kill_libvirtd(politely=True)
    host.start_libvirtd()


def stuck(stand: LibvirtStand) -> ServerSpec:
    """What libvirtd finds is what it writes down before it starts a QEMU, and no QEMU."""
    spec = stand.spec(network=[stand.port()])
    assert stand.driver.spawn(spec) == RUNNING
    host = stand.host
    host.kill_libvirtd()
    host.kill_guest(spec.uuid)
    wait_until(lambda: spec.uuid not in host.guest_pids(), "the end of the guest")
    (status,) = stand.settings.state_path.glob("*.xml")
    status.write_text(re.sub("<domstatus[^>]*>", _ABOUT_TO_START, status.read_text(), count=1))
    host.start_libvirtd()
    assert host.run("virsh", "domstate", "--reason", spec.uuid).strip() == "paused (starting up)"
    return spec


def test_it_is_told_at_once_and_is_itself_again_when_libvirtd_was_restarted(
    stand: LibvirtStand,
) -> None:
    spec = stuck(stand)
    assert stand.driver.servers() == {spec.uuid: SHUT_DOWN}
    with pytest.raises(DriverError, match="restart libvirtd"):
        stand.driver.start(spec.uuid, spec.node_uuid)
    stand.restart()
    with pytest.raises(DriverError, match="restart libvirtd"):
        stand.driver.reboot(spec.uuid, spec.node_uuid, hard=True)
    restart(stand.host)
    assert stand.driver.start(spec.uuid, spec.node_uuid) == RUNNING
    stand.driver.destroy(spec.uuid, spec.node_uuid)


def test_its_server_can_be_destroyed(stand: LibvirtStand) -> None:
    spec = stuck(stand)
    stand.driver.destroy(spec.uuid, spec.node_uuid)
    assert stand.taps.plugged() == []
    assert not (stand.settings.instances_path / spec.uuid).exists()
    stand.tidy_up()
    assert spec.uuid in stand.host.run("virsh", "list", "--all", "--uuid")
    restart(stand.host)
    stand.tidy_up()
    assert spec.uuid not in stand.host.run("virsh", "list", "--all", "--uuid")
    assert list(stand.settings.state_path.glob("*moorage*")) == []
