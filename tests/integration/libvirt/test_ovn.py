"""Real guests on a network of a real Neutron with OVN, by the official client: a user's day, and a move."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from moorage.drivers.libvirt.vifs.contract import tap_of
from tests.integration.libvirt import cloud_guests, ovn_site
from tests.integration.libvirt.cloud_guests import BOOT_SECONDS, LONGEST_SILENCE, Pings, serial_line
from tests.integration.libvirt.ovn_site import NETWORK, PATIENCE, OvnSite
from tests.lab.libvirt import programs
from tests.lab.ovn import chassis
from tests.support import text_screen
from tests.support.browser import Browser
from tests.support.debian import Unavailable
from tests.support.processes import wait_until

ONE, TWO, COPY = "one", "two", "copy"

pytest.importorskip("os_vif")
pytestmark = pytest.mark.timeout(900)


@dataclass
class HeldBack:
    """What is to be seen while nobody has told Neutron that the ports are plugged."""

    statuses: set[str]
    domains: set[str]
    ports: set[str]


@dataclass
class Guests:
    """Two, on two hosts: the tests follow each other with them, since a boot costs seconds."""

    site: OvnSite
    before: HeldBack


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guests]:
    image = cloud_guests.needed_programs()
    programs.use_binding()
    try:
        with ovn_site.running(tmp_path_factory.mktemp("ovn"), image) as site:
            yield Guests(site, _booted(site))
    except Unavailable as missing:
        pytest.skip(str(missing))


def _booted(site: OvnSite) -> HeldBack:
    group = site.user.ask("server", "group", "show", "apart")["id"]
    for host in site.lab.hosts.values():
        chassis.freeze(host)
    for name in (ONE, TWO):
        more = ("--network", NETWORK, "--hint", f"group={group}", "--property", f"guest_tick={_tick(name)}")
        site.user.create(name, *more)
    ids = [site.user.show(name)["id"] for name in (ONE, TWO)]
    wait_until(lambda: len(_domains(site, ids)) == len(ids), "the guests to be there", PATIENCE)
    seen = HeldBack(
        {site.user.status(name) for name in (ONE, TWO)},
        set(_domains(site, ids)),
        {port["status"] for each in ids for port in site.ports(each)},
    )
    for host in site.lab.hosts.values():
        chassis.thaw(host)
    for name in (ONE, TWO):
        site.user.await_status(name, "ACTIVE", PATIENCE)
        site.user.await_log(name, "guest: hostname [a-z]")
    return seen


def _tick(name: str) -> str:
    """The second one is to be typed at."""
    return "100000" if name == ONE else ""


def _domains(site: OvnSite, ids: list[str]) -> list[str]:
    """Their states."""
    hosts = site.lab.hosts.values()
    found = [host.run("virsh", "domstate", each, check=False).strip() for each in ids for host in hosts]
    return [state for state in found if state]


def test_guests_hold_still_until_neutron_says_that_their_ports_are_up(guests: Guests) -> None:
    assert guests.before == HeldBack({"BUILD"}, {"paused"}, {"DOWN"})


@pytest.mark.parametrize("name", [ONE, TWO])
def test_a_guest_gets_its_address_from_ovn_and_its_name_and_key_from_the_metadata_agent(
    guests: Guests, name: str
) -> None:
    site = guests.site
    shown, log = site.user.show(name), site.user.log(name)
    [port] = site.ports(shown["id"])
    [address] = [fixed["ip_address"] for fixed in port["fixed_ips"]]
    assert f"guest: nic eth0 {port['mac_address']} addr={address}/24 mtu=1442" in log
    assert "configdrive" not in log
    key = site.user.key.with_suffix(".pub").read_text().strip()
    for line in ("datasource metadata", f"uuid {shown['id']}", f"key {key}", f"hostname {name}"):
        assert f"guest: {line}" in log


def test_guests_on_two_hosts_talk_and_let_who_has_the_key_in(guests: Guests) -> None:
    site = guests.site
    assert site.host_of(ONE) is not site.host_of(TWO)
    told = site.ssh(TWO, f"hostname; ping -c 5 -W 5 {site.address(ONE)}")
    assert told.splitlines()[0] == TWO
    assert re.search(r"\b[1-5] packets received", told), told


@dataclass
class Watch:
    """What Neutron says of a port, as long as somebody looks."""

    site: OvnSite
    server_id: str
    bindings: list[dict[str, str]] = field(default_factory=list)
    profiles: list[str] = field(default_factory=list)
    """`migrating_to`."""

    def look(self) -> None:
        [port] = self.site.ports(self.server_id)
        self.profiles.append(port["binding:profile"].get("migrating_to", ""))
        self.bindings.append(self.site.bindings(port["id"]))


@contextmanager
def watching(site: OvnSite, server_id: str) -> Iterator[Watch]:
    watch, over = Watch(site, server_id), threading.Event()

    def work() -> None:
        while not over.wait(0.1):
            watch.look()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()


def test_a_guest_goes_on_counting_and_answers_ping_while_it_moves(guests: Guests) -> None:
    site = guests.site
    shown, here = site.user.show(ONE), site.host_of(ONE)
    there, address, before = site.other_host(here), site.address(ONE), site.user.ticks(ONE)[-1]
    with serial_line(site.user, TWO) as line:
        pings = Pings(line, address)
        with watching(site, shown["id"]) as watch:
            move = ("server", "migrate", "--live-migration", "--host", there.name, "--wait", shown["id"])
            site.operator.order(*move)
        assert site.host_of(ONE) is there, site.operator.why(shown["id"])
        silence = pings.longest_silence()
    print(f"it was silent for {silence:.1f} s at the most")
    assert silence <= LONGEST_SILENCE

    assert {here.name: "ACTIVE", there.name: "INACTIVE"} in watch.bindings
    assert there.name in watch.profiles
    [port] = site.ports(shown["id"])
    assert site.bindings(port["id"]) == {there.name: "ACTIVE"}
    assert (port["binding:host_id"], port["binding:profile"]) == (there.name, {})
    wait_until(lambda: site.ports(shown["id"])[0]["status"] == "ACTIVE", "the port to be up there", PATIENCE)
    assert not site.lab.private(here.name).joinpath(shown["id"]).exists()
    assert tap_of(port["id"]) not in here.run("ovs-vsctl", "list-ports", "br-int").split()

    wait_until(lambda: site.user.ticks(ONE)[-1] > before + 10, "the counter", BOOT_SECONDS)
    ticks = site.user.ticks(ONE)
    assert ticks == sorted(set(ticks)), "it has not booted again"
    assert site.address(ONE) == address


def test_novnc_shows_the_screen_of_a_guest_and_takes_what_is_typed(guests: Guests, tmp_path: Path) -> None:
    user, word = guests.site.user, "typed-in-a-browser"
    url = str(user.ask("console", "url", "show", "--novnc", TWO)["url"])
    with Browser(tmp_path) as browser, serial_line(user, TWO) as line:
        browser.go(url)
        connected = "return document.body.dataset.state === 'connected'"
        wait_until(lambda: bool(browser.run(connected)), "noVNC", PATIENCE)
        browser.type("canvas", f"echo {word}\ue007")
        wait_until(lambda: _screen(line.run("cat /dev/vcs1")).count(word) == 2, "it and its echo", PATIENCE)
        text = _screen(line.run("cat /dev/vcs1"))
        wait_until(
            lambda: text_screen.shows(browser.run(text_screen.CELLS), text), f"a picture of {text}", PATIENCE
        )
        (tmp_path / "screen.png").write_bytes(browser.screenshot())
    assert user.show(TWO)["id"] in text, "the firmware shows it"


def _screen(printed: str) -> str:
    return printed.replace("\r\n", "")


def test_a_snapshot_boots_and_a_rescued_server_has_its_disk_beside_another(guests: Guests) -> None:
    user = guests.site.user
    made = user.ask("server", "image", "create", "--name", COPY, "--wait", TWO)
    assert (made["status"], made["visibility"]) == ("active", "private")
    user.order("server", "rescue", "--image", "moorage-guest", ONE)
    user.create(COPY, "--network", NETWORK, image=COPY)
    user.await_status(ONE, "RESCUE")
    user.await_status(COPY, "ACTIVE")
    user.await_log(COPY, "guest: root /dev/vda1 boots=2")
    user.await_log(COPY, f"guest: hostname {COPY}")
    user.await_log(ONE, "guest: disk vdb ")
    user.await_log(ONE, "guest: root /dev/vdb1 boots=2")
    user.order("server", "unrescue", ONE)
    user.await_status(ONE, "ACTIVE")
    user.await_log(ONE, "guest: root /dev/vda1 boots=3")


def test_deleted_servers_leave_nothing(guests: Guests) -> None:
    site = guests.site
    names = [server["Name"] for server in site.user.ask("server", "list")]
    ids = [site.user.show(name)["id"] for name in names]
    taps = {tap_of(port["id"]) for each in ids for port in site.ports(each)}
    site.user.order("server", "delete", "--wait", *names)
    assert [port for each in ids for port in site.ports(each)] == []
    for name, host in site.lab.hosts.items():
        left = set(cloud_guests.leftovers(host, site.lab.private(name)))
        assert {each for each in left if not each.startswith("tap")} == set()
        assert taps & (left | set(host.run("ovs-vsctl", "list-ports", "br-int").split())) == set()
