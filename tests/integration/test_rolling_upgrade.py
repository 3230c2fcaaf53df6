"""A cloud in pieces is upgraded process by process under load, and partly taken back: nothing is lost.

It begins as the release before, and then gets this one's processes, and a schema that is newer still: this
tree's with one more migration. `make rolling-upgrade` does it longer, at 50 requests a second, and with
processes that know that schema.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import requests
import sqlalchemy as sa

from moorage.db import large_indexes, schema_fit
from tests.support import debian, haproxy, moorage, releases
from tests.support.deployment import ADMIN, SHARED_FLAVOR, Deployment, Neighbours, Part, running
from tests.support.haproxy import HAProxy
from tests.support.keep_alive_clients import KeepAliveClients, Request
from tests.support.processes import free_port, wait_until
from tests.support.profiles import Settings

ROUNDS = int(os.environ.get("MOORAGE_ROLLING_UPGRADES", "0"))
"""Of the long form; between two of them everything goes back."""
PER_SECOND = 50 if ROUNDS else 10
HEADERS = {**ADMIN, "Content-Type": "application/json"}


class BehindHAProxy(Neighbours):
    """Placement is asked by way of the load balancer, and processes are given the time that it needs."""

    def __init__(self) -> None:
        self.ports = {"compute": free_port(), "placement": free_port()}

    def sections(self, placement_url: str) -> Settings:
        front = f"http://127.0.0.1:{self.ports['placement']}"
        return {**super().sections(front), "process": {"drain_seconds": "2", "grace_seconds": "40"}}


class Site:
    """A cloud whose APIs and Placements are behind a load balancer."""

    def __init__(self, deployment: Deployment, front: HAProxy, second_placement: Part) -> None:
        self.deployment = deployment
        self.front = front
        self.groups = {
            "placement": [deployment.placement, second_placement],
            "compute": deployment.apis,
        }
        self.parts = [
            *self.groups["placement"],
            *self.groups["compute"],
            *deployment.conductors,
            *deployment.agents.values(),
        ]

    def restart(self, part: Part, source: Path | None) -> None:
        """As an operator does with each process: end it, start the other release, wait until it is back."""
        assert part.end() == 0, self.deployment.logs()
        part.source = source
        part.start()
        wait_until(self.all_up, f"{part.name} behind the load balancer", 60)
        if part.name in self.deployment.agents:
            wait_until(lambda: part.name in self.deployment.hosts_up(), f"{part.name} to be up", 60)

    def all_up(self) -> bool:
        return all(
            self.front.up(group) == {part.name for part in parts} for group, parts in self.groups.items()
        )


@contextmanager
def site(directory: Path, source: Path) -> Iterator[Site]:
    neighbours = BehindHAProxy()
    with ExitStack() as stack:
        # The load balancer has to be there first: conductors and agents look for Placement when they start.
        placements = {"placement": free_port(), "placement-2": free_port()}
        apis = {"api-1": free_port(), "api-2": free_port()}
        groups = {"compute": apis, "placement": placements}
        front = stack.enter_context(haproxy.in_front_of(directory, groups, neighbours.ports))
        deployment = stack.enter_context(
            running(directory, neighbours=neighbours, source=source, ports={**placements, **apis})
        )
        second = deployment.server("placement-2", "moorage-placement", placements["placement-2"])
        second.start()
        stack.callback(lambda: second.kill() if second.service is not None else None)
        found = Site(deployment, front, second)
        wait_until(found.all_up, "all to be up", 60)
        yield found


class Load:
    """Users: mostly they look; each tenth request boots a server, and each tenth deletes one of these."""

    def __init__(self, image: str) -> None:
        self._image = image
        self.booted: list[str] = []
        self._deletable: list[str] = []

    def request(self, number: int) -> Request:
        if number % 10 == 0:
            server = {
                "name": f"server-{number}",
                "imageRef": self._image,
                "flavorRef": SHARED_FLAVOR,
                "networks": "auto",
            }
            return Request("POST", "/v2.1/servers", json.dumps({"server": server}).encode(), HEADERS)
        if number % 10 == 5 and len(self._deletable) > 3:
            return Request("DELETE", f"/v2.1/servers/{self._deletable.pop(0)}", None, HEADERS)
        path = "/v2.1/servers/detail?limit=5" if number % 2 else "/v2.1/flavors/detail"
        return Request("GET", path, None, HEADERS)

    def heard(self, request: Request, status: int, body: bytes) -> None:
        if request.method == "POST" and status == 202:
            uuid = json.loads(body)["server"]["id"]
            self.booted.append(uuid)
            self._deletable.append(uuid)


@pytest.fixture
def previous() -> Path:
    try:
        return releases.previous()
    except releases.NotInThisClone as reason:
        pytest.skip(str(reason))


def test_nothing_is_lost_or_stuck(previous: Path, tmp_path: Path) -> None:
    following = releases.following(tmp_path)
    try:
        with site(tmp_path, previous) as cloud:
            upgrade(cloud, previous, following)
    except debian.Unavailable as reason:
        pytest.skip(str(reason))


def upgrade(cloud: Site, previous: Path, following: Path) -> None:
    deployment = cloud.deployment
    load = Load(deployment.image_id)
    clients = KeepAliveClients(
        [cloud.front.url("compute")], load.request, clients=8, per_second=PER_SECOND, heard=load.heard
    )
    newer = following if ROUNDS else None
    begun = time.monotonic()
    with clients:
        moorage.sync_database(deployment.config, following)
        roll(cloud, newer, previous)
        for _ in range(1, ROUNDS):
            for part in cloud.parts:
                cloud.restart(part, previous)
            roll(cloud, newer, previous)
    seconds = time.monotonic() - begun
    sent = clients.sent
    wait_until(lambda: not unfinished(deployment), "all operations to end", 90)
    stuck = [server for server in servers(deployment) if server["status"] != "ACTIVE"]
    print(
        f"a rolling upgrade: {sent.answers.total()} requests, {sent.answers.total() / seconds:.0f} a second, "
        f"{sent.failed} failed; {len(load.booted)} servers booted, {len(stuck)} not as they should be; "
        f"{len(unfinished(deployment))} operations stuck"
    )
    assert (sent.lost, sent.bodies) == ([], [])
    assert stuck == []
    assert len(load.booted) > 10
    check_schema(deployment, previous)


def roll(cloud: Site, newer: Path | None, previous: Path) -> None:
    """Each process, and then some back to the release before, on the newer schema."""
    for part in cloud.parts:
        cloud.restart(part, newer)
    deployment = cloud.deployment
    back = [deployment.apis[0], deployment.conductors[0]]
    if ROUNDS:
        back += [deployment.placement, deployment.agents["host-1"]]
    for part in back:
        cloud.restart(part, previous)


def unfinished(deployment: Deployment) -> list[str]:
    connected = sa.create_engine(deployment.database_url)
    with connected.connect() as connection:
        query = sa.text("SELECT kind || ' at ' || step FROM operations WHERE finished_at IS NULL")
        found = [str(row[0]) for row in connection.execute(query)]
    connected.dispose()
    return found


def servers(deployment: Deployment) -> list[dict[str, object]]:
    url = f"{deployment.urls[1]}/v2.1/servers/detail?all_tenants=1"
    found: list[dict[str, object]] = requests.get(url, headers=ADMIN, timeout=30).json()["servers"]
    return found


def check_schema(deployment: Deployment, previous: Path) -> None:
    """It is the newer one, with its index; the processes of the release before know and say so."""
    connected = sa.create_engine(deployment.database_url)
    assert schema_fit.version(connected) == "0901"
    index = {"ix_servers_of_a_test": "servers (user_id, created_at)"}
    assert large_indexes.missing(connected, index) == []
    connected.dispose()
    ready = requests.get(f"{deployment.urls[0]}/readyz", timeout=10)
    assert (ready.status_code, "schema: is 0901, newer than" in ready.text) == (200, True), ready.text
    manage = [str(moorage.PROGRAMS / "moorage-manage"), "--config-file", str(deployment.config)]
    told = subprocess.run(
        [*releases.launched(previous), *manage, "db", "sync"], capture_output=True, text=True, check=True
    )
    assert told.stdout.startswith("schema 0901: nothing to do: it is 0901, newer than")
    assert "the schema is 0901, newer than" in deployment.conductors[0].log.read_text()
