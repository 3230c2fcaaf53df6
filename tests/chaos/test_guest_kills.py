"""Kill what serves real guests, and guests: none runs twice, none is lost, and nothing is left of those gone.

`CHAOS_SEED` repeats a schedule; `CHAOS_SCHEDULES` asks for more of them and `CHAOS_KILLS` for longer ones, as
`make chaos` does.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import requests

from tests.chaos.crowd import Crowd
from tests.chaos.guest_books import GuestBooks
from tests.chaos.guest_users import GuestKiller, GuestUser
from tests.support import debian
from tests.support.guest_deployment import HOSTS, GuestDeployment, running
from tests.support.processes import NotReadyError, is_alive, wait_until

SCHEDULES = int(os.environ.get("CHAOS_SCHEDULES", "1"))
KILLS = int(os.environ.get("CHAOS_KILLS", "6"))
FIRST_SEED = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(10**6)))
SERVERS = 4
SETTLE_SECONDS = 240.0
_AT_ONCE_SECONDS = 10.0
_HOOK = """\
#!/bin/sh
if [ "$2" = release ] && [ -e /run/libvirt/freeze ]; then
    rm /run/libvirt/freeze
    kill -STOP $(pgrep -f /moorage-agent)
fi
"""
"""What libvirtd runs, and waits for, before it says that a guest is off; inside its host, as the agent is."""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuestDeployment]:
    try:
        with running(tmp_path_factory.mktemp("guests")) as made:
            yield made
    except debian.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def books(cloud: GuestDeployment) -> Iterator[GuestBooks]:
    opened = GuestBooks(cloud)
    yield opened
    opened.close()


@pytest.mark.timeout(600)
def test_a_guest_that_dies_is_shown_so_at_once(cloud: GuestDeployment, books: GuestBooks) -> None:
    server = cloud.boot()
    host = cloud.lab.hosts[cloud.wait_for(server, "ACTIVE")["OS-EXT-SRV-ATTR:host"]]
    host.kill_guest(server)
    shown = cloud.wait_for(server, "SHUTOFF", _AT_ONCE_SECONDS)
    assert shown["OS-EXT-STS:power_state"] == 4
    cloud.act(server, "os-start")
    cloud.wait_for(server, "ACTIVE")
    settle(cloud, books)
    cloud.delete(server)
    settle(cloud, books)


@pytest.mark.timeout(900 + 60 * KILLS)
@pytest.mark.parametrize("number", range(SCHEDULES))
def test_whatever_dies_no_guest_runs_twice_and_none_is_lost(
    cloud: GuestDeployment, books: GuestBooks, number: int
) -> None:
    seed = FIRST_SEED + number
    chance = random.Random(seed)
    print(f"seed {seed}")
    user = GuestUser("crowd-1", cloud.urls, cloud.image_id, seed)
    crowd = Crowd([user], SERVERS, pause=0.3)
    try:
        wait_until(lambda: any(one.running for one in books.on_hosts()), "a guest", 90)
        for kill in GuestKiller(cloud, chance).kills(KILLS):
            kill()
            time.sleep(chance.uniform(0.3, 3.0))
    finally:
        crowd.stop()
    print(f"answers {dict(crowd.answers)}")
    assert not crowd.surprises, crowd.surprises[:5]
    settle(cloud, books, user)
    print(f"moves {dict(books.moves())}")
    for server in user.servers():
        user.delete(server["id"])
    settle(cloud, books)
    assert books.servers() == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("when", ["spawn", "destroy"])
def test_an_agent_that_freezes_meanwhile_leaves_no_guest_of_a_server_that_is_gone(
    cloud: GuestDeployment, books: GuestBooks, when: str
) -> None:
    chance = random.Random(FIRST_SEED)
    print(f"CHAOS_SEED={FIRST_SEED}")
    victim = chance.choice(HOSTS)
    server = cloud.boot(victim)
    if when == "destroy":
        cloud.wait_for(server, "ACTIVE")
        cloud.delete(server)
    else:
        wait_until((cloud.lab.private(victim) / server).exists, "the spawn to begin")
    time.sleep(chance.uniform(0, 0.3))
    with frozen(cloud, victim):
        if when == "spawn":
            cloud.delete(server)
        wait_until(lambda: victim not in cloud.hosts_up(), "it to count as down", 60)
        wait_until(partial(cloud.is_gone, server), "the delete", 120)
    settle(cloud, books)


@pytest.mark.timeout(600)
def test_an_agent_that_freezes_in_a_reboot_leaves_an_evacuated_guest_alone(
    cloud: GuestDeployment, books: GuestBooks
) -> None:
    chance = random.Random(FIRST_SEED)
    print(f"CHAOS_SEED={FIRST_SEED}")
    victim = chance.choice(HOSTS)
    host = cloud.lab.hosts[victim]
    server = cloud.boot(victim)
    cloud.wait_for(server, "ACTIVE")
    guest = host.guest_pids()[server]
    with frozen_by_libvirtd(cloud, victim):
        cloud.act(server, "reboot", {"type": "HARD"})
        wait_until(lambda: not is_alive(guest), "the guest to be switched off")
        wait_until(lambda: victim not in cloud.hosts_up(), "it to count as down", 60)
        assert server not in host.guest_pids(), "the agent stands still before it starts the guest again"
        cloud.act(server, "os-resetState", {"state": "active"})  # nor does the reboot go on
        cloud.act(server, "evacuate", {})
        wait_until(lambda: cloud.show(server)["OS-EXT-SRV-ATTR:host"] != victim, "the evacuation", 120)
        cloud.wait_for(server, "SHUTOFF", 120)  # as of microversion 2.95
        cloud.act(server, "os-start")
        cloud.wait_for(server, "ACTIVE", 120)
        started = host.starts(server)
    settle(cloud, books)
    assert host.starts(server) == started, "the old guest was started once more"
    cloud.delete(server)
    settle(cloud, books)


@contextmanager
def frozen_by_libvirtd(cloud: GuestDeployment, host: str) -> Iterator[None]:
    """Its agent is stopped the moment in which a guest has been switched off, before it hears of that."""
    lab_host = cloud.lab.hosts[host]
    hook, armed = lab_host.directory / "etc" / "hooks" / "qemu", lab_host.directory / "run" / "freeze"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(_HOOK)
    hook.chmod(0o755)
    lab_host.kill_libvirtd(politely=True)  # it looks for hooks when it starts
    lab_host.start_libvirtd()
    armed.touch()
    try:
        yield
    finally:
        armed.unlink(missing_ok=True)
        hook.unlink()
        cloud.agents[host].thaw()
    wait_until(lambda: host in cloud.hosts_up(), "it to be back", 60)


@contextmanager
def frozen(cloud: GuestDeployment, host: str) -> Iterator[None]:
    """Its agent stands still meanwhile, wherever it was, and goes on there."""
    agent = cloud.agents[host]
    agent.freeze()
    try:
        yield
    finally:
        agent.thaw()
    wait_until(lambda: host in cloud.hosts_up(), "it to be back", 60)


def settle(cloud: GuestDeployment, books: GuestBooks, user: GuestUser | None = None) -> None:
    """All ends well within a bounded time, with every process alive."""
    begun = time.monotonic()
    cloud.wait_for_apis()

    def balanced() -> bool:
        assert not books.twice(), books.twice()
        if user is not None:
            user.decide()
        try:
            return books.in_flight() == 0 and not books.differences()
        except requests.ConnectionError:
            return False

    try:
        wait_until(balanced, "the books to balance", SETTLE_SECONDS)
    except NotReadyError:
        found = books.differences()
        pytest.fail("\n".join([f"{len(found)} differences:", *found[:20], cloud.logs()]))
    books.check_counters()
    dead = [part.name for part in cloud.parts if part.ended_by_itself]
    assert not dead, f"ended by themselves: {dead}\n{cloud.logs()}"
    print(f"settled in {time.monotonic() - begun:.1f} s")
