"""Users who keep a cloud busy: they boot, stop, reboot, move and delete servers, whatever it answers."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import requests

from tests.support.deployment import EXCLUSIVE_FLAVOR, SHARED_FLAVOR

PROJECTS = [f"crowd-{number}" for number in range(1, 9)]
_EXPECTED = {200, 202, 204, 404, 409, 503}
"""Done; gone meanwhile; busy meanwhile; the database is away."""
_ACTIONS: dict[str, list[dict[str, Any]]] = {
    "ACTIVE": [
        {"os-stop": None},
        {"reboot": {"type": "SOFT"}},
        {"reboot": {"type": "HARD"}},
        {"os-migrateLive": {"host": None, "block_migration": "auto"}},
        {"pause": None},
        {"suspend": None},
        {"rescue": None},
    ],
    "PAUSED": [{"unpause": None}, {"reboot": {"type": "HARD"}}],
    "SUSPENDED": [{"resume": None}, {"reboot": {"type": "HARD"}}],
    "RESCUE": [{"unrescue": None}],
    "SHUTOFF": [{"os-start": None}, {"reboot": {"type": "HARD"}}],
}


class User:
    """Works alone in a project; asks one API or another."""

    actions = _ACTIONS
    """What they ask of servers, by status."""

    def __init__(self, project: str, urls: Sequence[str], image_id: str, seed: int) -> None:
        self._urls = urls
        self._image_id = image_id
        self._random = random.Random(f"{project} {seed}")
        self._session = requests.Session()
        self._session.headers.update(
            {
                "x-auth-token": f"{project}:{project}",
                "x-roles": "manager,member,reader",
                "openstack-api-version": "compute 2.96",
            }
        )
        self.answers: Counter[int] = Counter()
        self.surprises: list[str] = []

    def act(self, wanted: int) -> None:
        """One request, such that there are about `wanted` servers and each of them has its troubles."""
        servers = [one for one in self.servers() if one["OS-EXT-STS:task_state"] != "deleting"]
        if len(servers) < wanted:
            self.boot(min(wanted - len(servers), self._random.randint(4, 12)))
        elif self._random.random() < 0.6:
            for server in self._random.sample(servers, min(len(servers), 4)):
                self.act_on(server)
        else:
            for server in self._random.sample(servers, min(len(servers), self._random.randint(2, 8))):
                self.delete(server["id"])

    def servers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._call("GET", "/servers/detail")["servers"]
        return found

    def boot(self, count: int) -> None:
        flavor = EXCLUSIVE_FLAVOR if self._random.random() < 0.3 else SHARED_FLAVOR
        server = {
            "name": "s",
            "flavorRef": flavor,
            "imageRef": self._image_id,
            "networks": "auto",
            "min_count": count,
            "max_count": count,
        }
        self._call("POST", "/servers", {"server": server})

    def act_on(self, server: dict[str, Any]) -> None:
        actions = self.actions.get(server["status"])
        if server["status"] == "ERROR":
            self.delete(server["id"])
        elif actions is not None:
            self._call("POST", f"/servers/{server['id']}/action", self._random.choice(actions))

    def delete(self, uuid: str) -> None:
        self._call("DELETE", f"/servers/{uuid}")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        url = f"{self._random.choice(self._urls)}/v2.1{path}"
        answer = self._session.request(method, url, json=body, timeout=30)
        self.answers[answer.status_code] += 1
        if answer.status_code not in _EXPECTED:
            self.surprises.append(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
        answer.raise_for_status()
        return answer.json() if answer.content and answer.status_code == 200 else None


class Crowd:
    """All of them at once, until stopped. `wanted` is how many servers there are about, all together."""

    def __init__(self, users: Sequence[User], wanted: int, pause: float = 0.1) -> None:
        self.users = users
        self._pause = pause
        self._each = wanted // len(users)
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._live, args=(user,), daemon=True) for user in self.users
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    @property
    def answers(self) -> Counter[int]:
        return sum((user.answers for user in self.users), Counter())

    @property
    def surprises(self) -> list[str]:
        return [surprise for user in self.users for surprise in user.surprises]

    def _live(self, user: User) -> None:
        """With a pause to think: a cloud is kept busy by what it has to do, not by being looked at."""
        while not self._stop.wait(self._pause):
            with contextlib.suppress(requests.RequestException):
                user.act(self._each)
