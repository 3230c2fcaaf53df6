"""Users of real guests, who boot, photograph, move and delete them; and who kills what serves them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import requests

from tests.chaos.crowd import User
from tests.chaos.guest_books import SNAPSHOT
from tests.lab.libvirt.hosts import LibvirtHost
from tests.support.deployment import SHARED_FLAVOR
from tests.support.guest_deployment import GuestDeployment

_DELETED = 0.2
"""How many of the requests are deletes."""
_SNAPSHOT = {"createImage": {"name": SNAPSHOT}}


class GuestUser(User):
    actions: dict[str, list[dict[str, Any]]] = {
        "ACTIVE": [
            _SNAPSHOT,
            {"reboot": {"type": "HARD"}},
            {"os-migrateLive": {"host": None, "block_migration": "auto"}},
            {"migrate": None},
            {"os-stop": None},
            {"pause": None},
            {"suspend": None},
        ],
        "PAUSED": [{"unpause": None}, _SNAPSHOT],
        "SUSPENDED": [{"resume": None}],
        "SHUTOFF": [{"os-start": None}, _SNAPSHOT, {"migrate": None}],
        "VERIFY_RESIZE": [{"confirmResize": None}, {"revertResize": None}],
    }

    def act(self, wanted: int) -> None:
        """Mostly with servers that are there, one after the other: each of them is work for a while."""
        servers = self.servers()
        idle = [one for one in servers if one["OS-EXT-STS:task_state"] is None]
        if len(servers) < wanted:
            self.boot(1)
        elif idle:
            server = self._random.choice(idle)
            if self._random.random() < _DELETED:
                self.delete(server["id"])
            else:
                self.act_on(server)

    def boot(self, count: int) -> None:
        server = {"name": "s", "flavorRef": SHARED_FLAVOR, "imageRef": self._image_id, "networks": "auto"}
        self._call("POST", "/servers", {"server": {**server, "min_count": count, "max_count": count}})

    def decide(self) -> None:
        """A resize that waits for a word gets it; one that has got it just now refuses another (409)."""
        for server in self.servers():
            if server["status"] == "VERIFY_RESIZE" and server["OS-EXT-STS:task_state"] is None:
                try:
                    self.act_on(server)
                except requests.HTTPError as error:
                    if error.response is None or error.response.status_code != 409:
                        raise


class GuestKiller:
    """Ends something at random and starts it again, and says so."""

    def __init__(self, cloud: GuestDeployment, chance: random.Random) -> None:
        self._cloud = cloud
        self._chance = chance
        self._begun = time.monotonic()

    def kills(self, count: int) -> list[Callable[[], None]]:
        """Each of them has its turns, in an order that nobody knows."""
        kinds = [self.agent, self.libvirtd, self.guest, self.conductor]
        chosen = [kinds[number % len(kinds)] for number in range(count)]
        self._chance.shuffle(chosen)
        return chosen

    def agent(self) -> None:
        host = self._chance.choice(sorted(self._cloud.agents))
        self._say("kill the agent of", host)
        part = self._cloud.agents[host]
        part.kill()
        self._pause(1.5)
        part.start(wait=False)

    def conductor(self) -> None:
        part = self._chance.choice(self._cloud.conductors)
        self._say("kill", part.name)
        part.kill()
        self._pause(1.5)
        part.start(wait=False)

    def libvirtd(self) -> None:
        host = self._host()
        self._say("kill libvirtd of", host.name)
        host.kill_libvirtd()
        self._pause(1.5)
        _forget_half_started(host)
        host.start_libvirtd()

    def guest(self) -> None:
        host = self._host()
        guests = sorted(host.guest_pids())
        if guests:
            victim = self._chance.choice(guests)
            self._say("kill guest", victim, "of", host.name)
            host.kill_guest(victim)

    def _host(self) -> LibvirtHost:
        return self._cloud.lab.hosts[self._chance.choice(sorted(self._cloud.lab.hosts))]

    def _pause(self, longest: float) -> None:
        time.sleep(self._chance.uniform(0, longest))

    def _say(self, *words: str) -> None:
        print(f"{time.monotonic() - self._begun:6.1f} s: {' '.join(words)}")


def _forget_half_started(host: LibvirtHost) -> None:
    """What an operator has to do after a libvirtd was killed just before it started a QEMU: the next one
    takes the domain for one that is being started, for ever, and lets nobody end that."""
    for status in (host.directory / "run" / "qemu").glob("*.xml"):
        if "<domstatus state='paused' reason='starting up' pid='0'>" in status.read_text():
            print(f"        {status.stem} was half started")
            status.unlink()
