"""`moorage up --driver libvirt` on a host, and the life of a real guest there with the official client."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.embedded import MOORAGE
from tests.integration.libvirt import cloud_guests
from tests.integration.libvirt.cloud_guests import GuestCloud, address_of, answers_ping, serial_line
from tests.lab.libvirt import hosts
from tests.lab.libvirt.hosts import LibvirtHost, LibvirtLab
from tests.support.processes import is_alive, wait_until
from tests.support.profiles import Settings, ini

NAME = "one"
SEEN_BY_EVENTS = "600"
"""Seconds between two looks at what runs: what is known earlier was told by libvirt."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LibvirtLab]:
    cloud_guests.needed_programs()
    with hosts.running(tmp_path_factory.mktemp("lab"), connected=True) as made:
        yield made


@pytest.fixture(scope="module")
def host(lab: LibvirtLab) -> LibvirtHost:
    return lab.hosts["h1"]


@pytest.fixture(scope="module")
def runtime() -> Iterator[Path]:
    with cloud_guests.network_directory() as directory:
        yield directory


def settings(lab: LibvirtLab, runtime: Path) -> Settings:
    return {
        "agent": {"heartbeat_interval": SEEN_BY_EVENTS},
        "compute": {"service_down_time": "3600"},
        "libvirt": {
            "virt_type": "qemu",
            "instances_path": str(lab.instances),
            "serial_listen": "127.0.0.1",
            "network_directory": str(runtime),
        },
    }


@pytest.fixture(scope="module")
def cloud(
    lab: LibvirtLab, host: LibvirtHost, runtime: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GuestCloud]:
    directory = tmp_path_factory.mktemp("cloud")
    config = directory / "moorage.conf"
    config.write_text(ini(settings(lab, runtime)))
    data, log = directory / "data", directory / "up.log"
    up = (MOORAGE, "up", "--driver", "libvirt", "--data", data, "--config", config, "--listen", host.address)
    with host.start([*up, "--verbose"], log, cloud_guests.environment()) as service:
        wait_until(
            lambda: "Moorage is up" in log.read_text() or not is_alive(service.pid), "the greeting", 120
        )
        assert service.process.poll() is None, service.log_tail()
        made = GuestCloud(data / "clouds.yaml", directory)
        made.furnish()
        yield made


@pytest.fixture(scope="module")
def address(cloud: GuestCloud) -> str:
    """Of the guest: one for all tests of this file, which follow each other."""
    return address_of(cloud.boot(NAME))


def test_a_booted_server_knows_who_it_is_and_answers_ping_and_ssh(
    cloud: GuestCloud, host: LibvirtHost, address: str
) -> None:
    assert address in cloud.await_log(NAME, r"guest: nic eth0 .*addr=.*")
    uuid = cloud.show(NAME)["id"]
    log = cloud.log(NAME)
    cloud.await_log(NAME, f"guest: uuid {uuid}")
    cloud.await_log(NAME, "guest: key ssh-ed25519")
    assert "guest: datasource metadata" in cloud.log(NAME), log
    assert answers_ping(host, address)
    assert cloud.ssh(host, address, "hostname").strip() == NAME


def test_its_screen_and_its_serial_line_are_reached_through_the_proxy(
    cloud: GuestCloud, host: LibvirtHost, address: str
) -> None:
    screen = cloud.console(NAME, "novnc")
    assert screen.receive(12).startswith(b"RFB 003.")
    screen.close()
    with serial_line(cloud, NAME) as line:
        assert line.run("echo answer=$((7 * 7))") == "answer=49\r\n"


def test_a_paused_server_stands_still_and_goes_on(cloud: GuestCloud, host: LibvirtHost, address: str) -> None:
    cloud.order("server", "pause", NAME)
    cloud.await_status(NAME, "PAUSED")
    assert "paused" in host.run("virsh", "list", "--all")
    cloud.order("server", "unpause", NAME)
    cloud.await_status(NAME, "ACTIVE")
    assert answers_ping(host, address)


def test_a_snapshot_is_an_image_with_data(cloud: GuestCloud, address: str) -> None:
    made = cloud.ask("server", "image", "create", "--name", "copy", "--wait", NAME)
    assert (made["status"], made["disk_format"]) == ("active", "qcow2")
    assert made["size"] > 1_000_000
    assert cloud.status(NAME) == "ACTIVE"


def test_its_own_shutdown_is_seen_and_it_can_be_started_again(
    cloud: GuestCloud, host: LibvirtHost, address: str
) -> None:
    cloud.ssh(host, address, "(sleep 1; sync; poweroff -f) >/dev/null 2>&1 &")
    cloud.await_status(NAME, "SHUTOFF")
    cloud.order("server", "start", NAME)
    cloud.await_status(NAME, "ACTIVE")
    cloud.await_log(NAME, "guest: root .* boots=2")


def test_a_deleted_server_leaves_nothing(
    cloud: GuestCloud, host: LibvirtHost, lab: LibvirtLab, address: str
) -> None:
    assert cloud_guests.leftovers(host, lab.private("h1"))
    cloud.order("server", "delete", "--wait", NAME)
    assert cloud_guests.leftovers(host, lab.private("h1")) == []
    [provider] = cloud.ask("resource", "provider", "list")
    used = cloud.ask("resource", "provider", "usage", "show", provider["uuid"])
    assert {one["resource_class"]: one["usage"] for one in used} == {
        "VCPU": 0,
        "MEMORY_MB": 0,
        "DISK_GB": 0,
    }
    assert given_out(cloud.directory / "data") == 0


def given_out(data: Path) -> int:
    """Addresses of the pool."""
    with closing(sqlite3.connect(f"file:{data / 'moorage.sqlite'}?mode=ro", uri=True)) as file:
        return int(file.execute("SELECT count(*) FROM addresses").fetchone()[0])
