"""A guest of Nova's, adopted while it runs: it is seen and managed, and nothing of it is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from typer.testing import CliRunner

from moorage.cli.main import commands
from moorage.core.config import ConfigError
from moorage.drivers.adoption import FoundGuest
from moorage.drivers.contract import RUNNING, SHUT_DOWN, DriverError
from tests.integration.libvirt.nova_guest import NovaGuest
from tests.integration.libvirt.stand import LibvirtStand
from tests.support.profiles import ini

if TYPE_CHECKING:
    from moorage.drivers.libvirt.driver import LibvirtDriver


@dataclass(kw_only=True)
class StandGuest(NovaGuest):
    """On the host of a driver."""

    stand: LibvirtStand


@pytest.fixture
def guest(stand: LibvirtStand) -> Iterator[StandGuest]:
    made = StandGuest(
        stand=stand,
        host=stand.host,
        instances=stand.settings.instances_path,
        image_id=stand.image_id,
        port=stand.port(),
    )
    yield made
    made.clear_up()


def _adopt(guest: StandGuest, *, dry_run: bool = False) -> list[FoundGuest]:
    from moorage.drivers.libvirt.adoption import adopting

    connection = _driver(guest).backend.domains.connection
    return adopting.adopt_all(connection, guest.instances, guest.stand.directory / "state", dry_run=dry_run)


def _driver(guest: StandGuest) -> LibvirtDriver:
    return cast("LibvirtDriver", guest.stand.driver)


def test_it_is_left_alone_until_it_is_adopted(guest: StandGuest) -> None:
    driver, node = _driver(guest), guest.stand.driver.nodes()[0].uuid
    assert driver.servers() == {}
    with pytest.raises(DriverError, match="not this host's"):
        driver.destroy(guest.uuid, node)
    _age(guest.base)
    guest.stand.tidy_up()
    assert guest.base.exists(), "its disk lies over it"
    assert [one.refusal for one in _adopt(guest, dry_run=True)] == [""]
    assert driver.servers() == {}
    assert guest.state() == "running"
    _adopt(guest)
    driver.destroy(guest.uuid, node)


def test_it_is_seen_stopped_started_rebooted_imaged_and_removed(guest: StandGuest) -> None:
    pid = guest.pid()
    assert _adopt(guest) == [FoundGuest(guest.uuid, "instance-0000002a")]
    assert _adopt(guest) == [], "it is ours"
    guest.stand.restart()
    driver, node = _driver(guest), guest.stand.driver.nodes()[0].uuid
    assert driver.servers() == {guest.uuid: RUNNING}
    assert guest.pid() == pid, "it did not notice"
    waiting = guest.stand.waiting_image()
    driver.snapshot(guest.uuid, node, waiting)
    assert guest.stand.has_data(waiting)
    assert driver.stop(guest.uuid, node) == SHUT_DOWN
    guest.run("ip", "link", "del", guest.tap)  # as after a restart of the host
    assert driver.start(guest.uuid, node) == RUNNING
    assert guest.tap in guest.stand.taps.plugged()
    assert driver.reboot(guest.uuid, node, hard=True) == RUNNING
    assert "OpenStack Foundation" in guest.run("virsh", "dumpxml", guest.uuid), "it is Nova's definition"
    _age(guest.base)
    guest.stand.tidy_up()
    assert guest.base.exists()
    driver.destroy(guest.uuid, node)
    assert driver.servers() == {}
    assert not guest.directory.exists()


def test_what_is_rebuilt_has_a_definition_of_our_own(guest: StandGuest) -> None:
    _adopt(guest)
    driver, node = _driver(guest), guest.stand.driver.nodes()[0].uuid
    new = {"uuid": guest.uuid, "work": "2-1", "instance_name": "other"}
    rebuilt = msgspec.structs.replace(guest.stand.spec(network=[dict(guest.port or {})]), **new)
    assert driver.rebuild(rebuilt) == RUNNING
    xml = guest.run("virsh", "dumpxml", guest.uuid)
    assert "OpenStack Foundation" not in xml
    assert "<name>instance-0000002a</name>" in xml
    driver.check_resize(guest.uuid, node, {"disk": 1})
    driver.destroy(guest.uuid, node)


def test_a_host_that_would_be_another_node_adopts_nothing(guest: StandGuest) -> None:
    identity = guest.stand.directory / "state" / "compute_id"
    kept = identity.read_text()
    identity.unlink()
    with pytest.raises(ConfigError, match="the same node"):
        _adopt(guest)
    assert not identity.exists()
    identity.write_text(kept)
    assert _command(guest) == {"dry_run": False, "guests": [{**_NAMED, "server_uuid": guest.uuid}]}
    _driver(guest).destroy(guest.uuid, guest.stand.driver.nodes()[0].uuid)


_NAMED = {"name": "instance-0000002a", "refusal": ""}


def _command(guest: StandGuest) -> Any:
    """What `moorage adopt-guests` tells."""
    stand = guest.stand
    agent = {"host": "h1", "driver": "libvirt", "state_directory": str(stand.directory / "state")}
    driver = {"connection_uri": stand.host.uri, "instances_path": str(guest.instances)}
    config = stand.directory / "agent.conf"
    config.write_text(ini({"agent": agent, "libvirt": driver}))
    ran = CliRunner().invoke(commands, ["adopt-guests", "--config-file", str(config), "--json"])
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


def _age(path: Path) -> None:
    os.utime(path, (1, 1))
