"""A cloud in pieces on three real hosts: guests talk, move and outlive a host, by the official client."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import pytest

from tests.integration.libvirt import cloud_guests, guest_site
from tests.integration.libvirt.cloud_guests import (
    BOOT_SECONDS,
    LONGEST_SILENCE,
    Pings,
    address_of,
    answers_ping,
    serial_line,
)
from tests.integration.libvirt.guest_site import GuestSite
from tests.lab.libvirt import hosts
from tests.support.debian import Unavailable
from tests.support.processes import wait_until

ONE, TWO = "one", "two"
pytestmark = pytest.mark.timeout(600)
long_form = pytest.mark.skipif(
    not os.environ.get("MOORAGE_MACHINES"), reason="each boot costs seconds of processor time: make machines"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuestSite]:
    """Its tests follow each other, with the same two guests: a boot costs seconds of processor time."""
    image = cloud_guests.needed_programs()
    try:
        with (
            hosts.running(tmp_path_factory.mktemp("lab"), ("h1", "h2", "h3"), connected=True) as lab,
            guest_site.running(lab, tmp_path_factory.mktemp("cloud"), image) as made,
        ):
            made.cloud.boot(ONE, "--host", "h1", "--property", "guest_tick=100000")
            made.cloud.boot(TWO, "--host", "h2")
            for name in (ONE, TWO):
                made.cloud.await_log(name, "guest: key ssh-ed25519")
            yield made
    except Unavailable as missing:
        pytest.skip(str(missing))


def talk(site: GuestSite) -> bool:
    """Whether the second guest reaches the first one."""
    target, shown = address_of(site.cloud.show(ONE)), site.cloud.show(TWO)
    ping = f"ping -c 1 -W 10 {target}"
    return " 0% packet loss" in site.cloud.ssh(site.host_of(TWO), address_of(shown), ping, check=False)


def test_guests_on_two_hosts_talk(site: GuestSite) -> None:
    assert (site.host_of(ONE).name, site.host_of(TWO).name) == ("h1", "h2")
    assert talk(site)


def test_a_guest_goes_on_counting_where_it_is_migrated_to(site: GuestSite) -> None:
    address, before = address_of(site.cloud.show(ONE)), site.cloud.ticks(ONE)[-1]
    assert answers_ping(site.lab.hosts["h1"], address)
    with serial_line(site.cloud, TWO) as line:
        pings = Pings(line, address)
        site.cloud.order("server", "migrate", "--live-migration", "--host", "h3", "--wait", ONE)
        silence = pings.longest_silence()
    print(f"it was silent for {silence:.1f} s at the most")
    assert silence <= LONGEST_SILENCE, "the other hosts do not know where it has gone"
    assert (site.cloud.status(ONE), site.host_of(ONE).name) == ("ACTIVE", "h3"), site.cloud.why(ONE)
    assert address_of(site.cloud.show(ONE)) == address
    wait_until(lambda: answers_ping(site.lab.hosts["h3"], address), "an answer to its new host", 10)
    wait_until(lambda: site.cloud.ticks(ONE)[-1] > before, "the counter", BOOT_SECONDS)
    ticks = site.cloud.ticks(ONE)
    assert ticks == sorted(set(ticks)), "it has not booted again"
    assert talk(site)
    assert cloud_guests.leftovers(site.lab.hosts["h1"], site.lab.private("h1")) == []


@long_form
def test_a_guest_is_migrated_cold_with_its_disk(site: GuestSite) -> None:
    address = address_of(site.cloud.show(TWO))
    site.cloud.order("server", "migrate", "--host", "h1", "--wait", TWO)
    assert site.cloud.status(TWO) == "VERIFY_RESIZE", site.cloud.why(TWO)
    site.cloud.await_log(TWO, "guest: root .* boots=2")
    site.cloud.order("server", "migrate", "confirm", TWO)
    site.cloud.await_status(TWO, "ACTIVE")
    assert (site.host_of(TWO).name, address_of(site.cloud.show(TWO))) == ("h1", address)
    assert cloud_guests.leftovers(site.lab.hosts["h2"], site.lab.private("h2")) == []


@long_form
def test_a_guest_of_a_dead_host_goes_on_with_its_disk_elsewhere(site: GuestSite) -> None:
    dead = site.host_of(ONE)
    dead.die()
    cloud = site.cloud

    def is_down() -> bool:
        states = {one["Host"]: one["State"] for one in cloud.ask("compute", "service", "list")}
        return bool(states[dead.name] == "down")

    wait_until(is_down, "the host to be known as dead", 120)
    cloud.order("server", "evacuate", "--host", "h2", ONE)
    wait_until(
        lambda: site.host_of(ONE).name == "h2" and cloud.status(ONE) == "SHUTOFF", "the evacuation", 120
    )
    cloud.order("server", "start", ONE)
    cloud.await_log(ONE, "guest: root .* boots=2")


@long_form
def test_a_guest_is_resized(site: GuestSite) -> None:
    site.cloud.ask("flavor", "create", "--vcpus", "1", "--ram", "256", "--disk", "2", "m1.larger")
    site.cloud.order("server", "resize", "--flavor", "m1.larger", "--wait", TWO)
    assert site.cloud.status(TWO) == "VERIFY_RESIZE", site.cloud.why(TWO)
    site.cloud.order("server", "resize", "confirm", TWO)
    site.cloud.await_status(TWO, "ACTIVE")
    site.cloud.await_log(TWO, "guest: disk vda bytes=2147483648")
    site.cloud.await_log(TWO, "guest: root .* boots=3")


def test_deleted_servers_leave_nothing(site: GuestSite) -> None:
    site.cloud.order("server", "delete", "--wait", ONE, TWO)
    for name, host in site.lab.hosts.items():
        if host.is_alive:
            assert cloud_guests.leftovers(host, site.lab.private(name)) == []
    assert kept(site) <= for_the_dead(site)


@long_form
def test_a_host_that_comes_back_forgets_servers_that_went_on_without_it(site: GuestSite) -> None:
    [dead] = [name for name, host in site.lab.hosts.items() if not host.is_alive]
    assert kept(site), "what it has plugged is written down for it"
    site.deployment.power_on(dead)
    wait_until(lambda: not kept(site), "its records to go", 120)
    left = partial(cloud_guests.leftovers, site.lab.hosts[dead], site.lab.private(dead))
    wait_until(lambda: left() == [], f"nothing on {dead}", 60)


def kept(site: GuestSite) -> set[str]:
    """Of servers on the storage that hosts share."""
    files = (path for path in site.instances.rglob("*") if path.is_file())
    return {str(path.relative_to(site.instances)) for path in files if "_base" not in path.parts}


def for_the_dead(site: GuestSite) -> set[str]:
    """What only dead hosts know of: they remove it when they come back."""
    providers = site.cloud.ask("resource", "provider", "list")
    dead = [one["uuid"] for one in providers if not site.lab.hosts[one["name"]].is_alive]
    found = (path for node in dead for path in (site.instances / "_left" / node).glob("*.json"))
    return {str(path.relative_to(site.instances)) for path in found}
