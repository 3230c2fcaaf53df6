"""A real Nova with its libvirt driver is taken over as the page says, with two guests that run all the while.

Nova has booted them: on OVN ports of Neutron's, with disks over its own `_base`, swap, and a config drive.
One of them is looked at until it is deleted, and never restarted; all is done to the other that users do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from moorage.drivers.libvirt.vifs.contract import tap_of
from tests.integration.libvirt import cloud_guests, nova_site
from tests.integration.libvirt.nova_site import HOSTS, NovaSite
from tests.integration.libvirt.ovn_site import NETWORK, PATIENCE
from tests.lab.libvirt import programs
from tests.lab.libvirt.hosts import LibvirtHost
from tests.support.debian import Unavailable
from tests.support.processes import wait_until

pytest.importorskip("os_vif")
pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        not os.environ.get("MOORAGE_MACHINES"),
        reason="a Nova and its guests cost minutes of processor time: make machines",
    ),
]
BUSY, CALM = "busy", "calm"
OWN_PORT = "own"
_CHECKSUMS = "#!/bin/sh\nrmmod virtio_net\ninsmod /modules/virtio_net.ko csum=0\n"
"""Nobody else makes them where Open vSwitch works without the kernel, and Nova has no word for it."""
_BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


@dataclass(frozen=True)
class Guest:
    """What was seen of one while Nova ran."""

    id: str
    host: LibvirtHost
    pid: int
    shown: dict[str, Any]
    tap: str
    port_id: str


@dataclass(frozen=True)
class TakenOver:
    site: NovaSite
    guests: dict[str, Guest]
    boot_id: str
    uptime: float
    metadata: dict[str, Any]
    rehearsed: CompletedProcess[str]
    imported: list[CompletedProcess[str]]
    checked: str
    adopted: dict[str, list[CompletedProcess[str]]]
    listed: list[dict[str, Any]]
    """Servers, as step 7 of the page looks at them."""
    audited: CompletedProcess[str]


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TakenOver]:
    image = cloud_guests.needed_programs()
    programs.use_binding()
    try:
        with nova_site.running(tmp_path_factory.mktemp("nova"), image) as site:
            try:
                yield _take_over(site)
            finally:
                print(site.logs())
    except Unavailable as missing:
        pytest.skip(str(missing))


def _take_over(site: NovaSite) -> TakenOver:
    """The walk, step by step."""
    guests = _booted_by_nova(site)
    busy = guests[BUSY].host
    inside = partial(site.ssh, BUSY, busy)
    boot_id, told = inside(_BOOT_ID), site.metadata_of(BUSY, busy)
    uptime = float(inside("cat /proc/uptime").split()[0])
    site.set_up()
    rehearsed = site.rehearse()
    site.stop_nova()
    imported = site.bring_over()
    assert [each.returncode for each in imported] == [0, 0], imported
    checked = site.start_control_plane()
    adopted = {}
    for host in HOSTS:
        adopted[host] = [site.adopt(host, "--dry-run"), site.adopt(host)]
        site.start_agent(host)
    looking = site.look()
    listed, audited = looking.ask("server", "list", "--all-projects", "--long"), site.audit(looking)
    site.open()
    return TakenOver(
        *(site, guests, boot_id, uptime, told, rehearsed, imported, checked, adopted, listed, audited)
    )


def _booted_by_nova(site: NovaSite) -> dict[str, Guest]:
    user, user_data = site.user, site.user.directory / "user-data"
    user_data.write_text(_CHECKSUMS)
    user.order("port", "create", "--network", NETWORK, OWN_PORT)
    drive = ("--use-config-drive", "--user-data", str(user_data), "--property", "guest_tick=1000000")
    user.create(BUSY, "--port", OWN_PORT, *drive)
    user.create(CALM, "--network", NETWORK)
    for name in (BUSY, CALM):
        user.await_status(name, "ACTIVE", PATIENCE)
        user.await_log(name, r"guest: nic eth0 \S+ addr=")
    return {name: _seen(site, name) for name in (BUSY, CALM)}


def _seen(site: NovaSite, name: str) -> Guest:
    server_id, host = site.user.show(name)["id"], site.host_of(name)
    [port] = site.ports(server_id)
    shown = site.operator.show(server_id)
    return Guest(server_id, host, host.guest_pids()[server_id], shown, tap_of(port["id"]), port["id"])


def _switched(host: LibvirtHost) -> set[str]:
    return set(host.run("ovs-vsctl", "list-ports", "br-int").split())


def test_all_commands_say_that_all_came_over(taken: TakenOver) -> None:
    assert (taken.rehearsed.returncode, "servers: 2\n" in taken.rehearsed.stdout) == (0, True)
    placement, compute = taken.imported
    assert placement.stdout.endswith("imported; both sides are the same\n")
    assert compute.stdout.endswith("imported, compared: no difference\n")
    assert "Result: Failure" not in taken.checked
    for host, (dry, done) in taken.adopted.items():
        assert (dry.returncode, done.returncode) == (0, 0), f"{dry.stderr}{done.stderr}"
        for guest in taken.guests.values():
            whose, is_here = f"{guest.id} {_name(guest)}: ", guest.host.name == host
            assert (f"{whose}can be adopted\n" in dry.stdout) == is_here
            assert (f"{whose}adopted\n" in done.stdout) == is_here
    assert {(server["Name"], server["Status"]) for server in taken.listed} == {
        (BUSY, "ACTIVE"),
        (CALM, "ACTIVE"),
    }
    assert (taken.audited.returncode, taken.audited.stdout) == (0, "0 differences.\n"), taken.audited


def _name(guest: Guest) -> str:
    return str(guest.shown["OS-EXT-SRV-ATTR:instance_name"])


def test_guests_have_not_noticed(taken: TakenOver) -> None:
    site = taken.site
    for name, guest in taken.guests.items():
        assert guest.host.guest_pids()[guest.id] == guest.pid
        assert guest.host.starts(guest.id) == 1
        assert site.operator.show(guest.id) == guest.shown, name
    inside = partial(site.ssh, BUSY, taken.guests[BUSY].host)
    assert inside(_BOOT_ID) == taken.boot_id
    assert float(inside("cat /proc/uptime").split()[0]) > taken.uptime
    ticks = site.user.ticks(BUSY)
    assert ticks == list(range(1, len(ticks) + 1)), "it has counted on"


def test_guests_hear_the_same_from_the_metadata_service(taken: TakenOver) -> None:
    told = taken.site.metadata_of(BUSY, taken.guests[BUSY].host)
    for name in (
        "uuid",
        "name",
        "meta",
        "public_keys",
        "keys",
        "launch_index",
        "availability_zone",
        "project_id",
    ):
        assert told[name] == taken.metadata[name]
    assert (taken.metadata["hostname"], told["hostname"]) == (f"{BUSY}.novalocal", BUSY)


def test_it_is_stopped_started_and_rebooted_from_its_own_disk(taken: TakenOver) -> None:
    user, guest = taken.site.user, taken.guests[BUSY]
    user.order("server", "stop", BUSY)
    user.await_status(BUSY, "SHUTOFF")
    assert guest.id not in guest.host.guest_pids()
    user.order("server", "start", BUSY)
    user.await_status(BUSY, "ACTIVE")
    _boots(taken, 2)
    for number, how in ((3, "--hard"), (4, "--soft")):
        user.order("server", "reboot", how, "--wait", BUSY)
        _boots(taken, number)
    assert "OpenStack Foundation" in guest.host.run("virsh", "dumpxml", guest.id), "it is Nova's definition"
    switched = (guest.host.directory / "ovs" / "log" / "vswitchd.log").read_text()
    assert "failed to create bridge" not in switched
    assert guest.tap in _switched(guest.host)


def _boots(taken: TakenOver, number: int) -> None:
    """So many, and is reached by its port."""
    user = taken.site.user
    user.await_log(BUSY, f"guest: root /dev/vda1 boots={number}")
    user.await_log(BUSY, r"guest: nic eth0 \S+ addr=")
    assert taken.site.ssh(BUSY, taken.site.host_of(BUSY), "hostname").strip() == f"{BUSY}.novalocal"


def test_it_is_paused_and_suspended_and_goes_on(taken: TakenOver) -> None:
    user = taken.site.user
    inside = partial(taken.site.ssh, BUSY, taken.guests[BUSY].host)
    boot_id = inside(_BOOT_ID)
    for words, status in (
        ("pause", "PAUSED"),
        ("unpause", "ACTIVE"),
        ("suspend", "SUSPENDED"),
        ("resume", "ACTIVE"),
    ):
        user.order("server", words, BUSY)
        user.await_status(BUSY, status)
    assert inside(_BOOT_ID) == boot_id


def test_its_screen_is_shown_and_its_disk_becomes_an_image(taken: TakenOver) -> None:
    user = taken.site.user
    screen = user.console(BUSY, "novnc")
    assert screen.receive(12).startswith(b"RFB 003.008")
    screen.close()
    assert user.ask("server", "image", "create", "--name", "copy", "--wait", BUSY)["status"] == "active"


def test_a_port_comes_and_goes(taken: TakenOver) -> None:
    user, guest = taken.site.user, taken.guests[BUSY]
    before = _switched(guest.host)
    port = user.ask("port", "create", "--network", NETWORK, "second")["id"]
    user.order("server", "add", "port", BUSY, port)
    user.await_log(BUSY, r"guest: nic eth1 \S+ addr=")
    user.order("server", "remove", "port", BUSY, port)
    wait_until(lambda: _switched(guest.host) == before, "the port to be unplugged", PATIENCE)


def test_a_new_server_boots_beside_them(taken: TakenOver) -> None:
    """It waits for Neutron, which has to know where Compute is now."""
    user = taken.site.user
    user.create("new", "--network", NETWORK)
    user.await_status("new", "ACTIVE", PATIENCE)
    user.await_log("new", "guest: datasource metadata")
    user.order("server", "delete", "--wait", "new")


def test_it_moves_while_it_runs_and_comes_back(taken: TakenOver) -> None:
    site, guest = taken.site, taken.guests[BUSY]
    boot_id = site.ssh(BUSY, guest.host, _BOOT_ID)
    for there in (_other(taken, guest.host), guest.host):
        before = site.user.ticks(BUSY)[-1]
        words = ("--live-migration", "--host", there.name, "--wait")
        site.operator.order("server", "migrate", *words, guest.id)
        assert site.host_of(BUSY) is there, site.operator.why(guest.id)
        wait_until(lambda: site.user.ticks(BUSY)[-1] > before + 10, "the counter", PATIENCE)  # noqa: B023
        assert site.ssh(BUSY, there, _BOOT_ID) == boot_id
        assert guest.tap not in _switched(_other(taken, there))
        assert "OpenStack Foundation" in there.run("virsh", "dumpxml", guest.id)


def _other(taken: TakenOver, than: LibvirtHost) -> LibvirtHost:
    [other] = [host for host in taken.site.lab.hosts.values() if host is not than]
    return other


def test_it_gets_another_flavor_and_another_host_and_is_rescued(taken: TakenOver) -> None:
    operator, guest = taken.site.operator, taken.guests[BUSY]
    shape = ("--vcpus", "2", "--ram", "256", "--disk", "2", "--swap", "16")
    operator.order("flavor", "create", *shape, "m1.other")
    operator.order("server", "resize", "--flavor", "m1.other", "--wait", guest.id)
    operator.order("server", "resize", "confirm", guest.id)
    taken.site.user.await_status(BUSY, "ACTIVE")
    _boots(taken, 5)
    assert taken.site.ssh(BUSY, taken.site.host_of(BUSY), "nproc").strip() == "2"

    here = taken.site.host_of(BUSY)
    operator.order("server", "migrate", "--host", _other(taken, here).name, "--wait", guest.id)
    operator.order("server", "migration", "confirm", guest.id)
    taken.site.user.await_status(BUSY, "ACTIVE")
    assert taken.site.host_of(BUSY) is not here
    _boots(taken, 6)

    operator.order("server", "rescue", "--image", "moorage-guest", guest.id)
    taken.site.user.await_status(BUSY, "RESCUE")
    operator.order("server", "unrescue", guest.id)
    taken.site.user.await_status(BUSY, "ACTIVE")
    _boots(taken, 7)
    assert "OpenStack Foundation" in taken.site.host_of(BUSY).run("virsh", "dumpxml", guest.id)


def test_deleted_guests_leave_nothing_but_novas_images(taken: TakenOver) -> None:
    site = taken.site
    site.user.order("server", "delete", "--wait", BUSY, CALM)
    for guest in taken.guests.values():
        host = guest.host
        assert host.run("virsh", "list", "--all", "--name").split() == []
        assert host.guest_pids() == {}
        assert {path.name for path in site.lab.private(host.name).iterdir()} == {"_base", "locks"}
        assert guest.tap not in _switched(host)
        assert guest.tap not in host.run("ip", "-o", "link")
        records: Path = site.deployment.directory / host.name / "vifs" / "neutron"
        assert list(records.iterdir()) == []
        kept = {path.name for path in (site.lab.private(host.name) / "_base").iterdir()}
        assert {name for name in kept if re.fullmatch("[0-9a-f]{40}", name)}, "they are Nova's"
        allocations = site.deployment.get_placement(f"/allocations/{guest.id}")["allocations"]
        assert allocations == {}
        gone = site.neutron.network.get(f"/ports/{guest.port_id}")
        assert gone.status_code == (404 if guest is taken.guests[CALM] else 200)
    assert site.ports(taken.guests[BUSY].id) == []
    audited = site.audit(site.operator)
    assert audited.returncode == 0, audited.stdout
