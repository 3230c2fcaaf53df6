"""Kill a whole cloud while servers move; when it is back, each is on one host, with just its allocations."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import requests

from moorage.compute.imaging.snapshots import PATIENCE
from tests.chaos.test_boot_kills import HEADERS, MOORAGE, boot, image_of, rows, servers
from tests.support.processes import NotReadyError, Service, answers, free_port, start_service, wait_until

SETTINGS = """
[compute]
allow_resize_to_same_host = true
[quota]
instances = -1
cores = -1
ram = -1
[agent]
heartbeat_interval = 0.5
inventory_interval = 0.5
[conductor]
ask_again_seconds = 2
[fake]
vcpus = 64
faults = hand_over:delay=0.05+fail@0.05,take_over:delay=0.05+fail_here@0.15,expect:fail_here@0.1,\
live_migrate:delay=0.1+fail@0.1,rebuild:delay=0.05,undo_resize:fail@0.1,keep_resize:fail@0.1
"""
UNFINISHED = "SELECT id FROM operations WHERE finished_at IS NULL"
KILLS = 4
SERVERS = 16
HOSTS = 4
AT_REST = {"ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "RESCUE", "SHELVED_OFFLOADED"}
SETTLED = {*AT_REST, "ERROR", "VERIFY_RESIZE"}
WAYS_BACK: dict[str, list[dict[str, Any]]] = {
    "VERIFY_RESIZE": [{"confirmResize": None}, {"revertResize": None}],
    "PAUSED": [{"unpause": None}, {"reboot": {"type": "HARD"}}],
    "SUSPENDED": [{"resume": None}],
    "RESCUE": [{"unrescue": None}],
    "SHELVED_OFFLOADED": [{"unshelve": None}],
}


def start(directory: Path, port: int) -> Service:
    configuration = directory / "moorage.conf"
    configuration.write_text(SETTINGS)
    command: list[str | Path] = [MOORAGE, "up", "--data", directory / "data", "--auth", "none"]
    command += ["--placement-port", str(free_port()), "--compute-port", str(port), "--hosts", str(HOSTS)]
    command += ["--config", configuration]
    return start_service(command, port, directory / "up.log", ready=lambda: answers(port))


class Movers:
    """Administrators who move servers about, whatever the cloud answers."""

    def __init__(self, url: str, uuids: list[str], seed: int) -> None:
        self._url = url
        self._stop = threading.Event()
        self.accepted = 0
        shares = [uuids[number::4] for number in range(4)]
        self._threads = [
            threading.Thread(target=self._live, args=(share, random.Random(seed + number)), daemon=True)
            for number, share in enumerate(shares)
        ]
        for thread in self._threads:
            thread.start()

    def _live(self, mine: list[str], chance: random.Random) -> None:
        while not self._stop.is_set():
            try:
                self._ask(chance.choice(mine), chance)
            except requests.RequestException:
                time.sleep(0.05)

    def _ask(self, uuid: str, chance: random.Random) -> None:
        shown = requests.get(f"{self._url}/v2.1/servers/{uuid}", headers=HEADERS, timeout=10)
        if shown.status_code != 200:
            return
        server = shown.json()["server"]
        if chance.random() < 0.02:
            requests.delete(f"{self._url}/v2.1/servers/{uuid}", headers=HEADERS, timeout=10)
            return
        if chance.random() < 0.1:
            self._evacuate(server)
        else:
            self.accepted += act(self._url, uuid, _something(server, chance)).ok

    def _evacuate(self, server: dict[str, Any]) -> None:
        """From a host that is declared dead for a moment, and finds out later what it should not have."""
        host = server["OS-EXT-SRV-ATTR:host"]
        declare(self._url, host, dead=True)
        self.accepted += act(self._url, server["id"], {"evacuate": {}}).ok
        declare(self._url, host, dead=False)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)


def _something(server: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    if server["status"] in WAYS_BACK:
        return chance.choice(WAYS_BACK[server["status"]])
    other = "2" if server["flavor"]["original_name"] == "m1.tiny" else "1"
    return chance.choice(
        [
            {"migrate": None},
            {"migrate": {"host": f"fake-{chance.randint(1, HOSTS)}"}},
            {"resize": {"flavorRef": other}},
            {"os-migrateLive": {"host": None, "block_migration": "auto"}},
            {"rebuild": {"imageRef": server["image"]["id"]}},
            {"pause": None},
            {"suspend": None},
            {"rescue": None},
            {"createImage": {"name": "i"}},
            {"createBackup": {"name": "b", "backup_type": "daily", "rotation": 1}},
            {"shelve": None},
        ]
    )


def act(url: str, uuid: str, body: dict[str, Any]) -> requests.Response:
    return requests.post(f"{url}/v2.1/servers/{uuid}/action", json=body, headers=HEADERS, timeout=10)


def declare(url: str, host: str, *, dead: bool) -> None:
    listed = requests.get(f"{url}/v2.1/os-services?host={host}", headers=HEADERS, timeout=10)
    (service,) = listed.json()["services"]
    path = f"{url}/v2.1/os-services/{service['id']}"
    requests.put(path, json={"forced_down": dead}, headers=HEADERS, timeout=10)


def unsettled(url: str) -> list[str]:
    return [
        server["id"]
        for server in servers(url)
        if server["status"] not in SETTLED or server["OS-EXT-STS:task_state"] is not None
    ]


def settle(url: str) -> None:
    """Wait for all that is under way, then confirm what waits for it, as its users would.

    An image whose request was killed before it had a record is gone on with after a while."""
    wait_until(lambda: not unsettled(url), "every server to settle", PATIENCE.total_seconds() + 60)
    for server in servers(url):
        if server["status"] == "VERIFY_RESIZE":
            assert act(url, server["id"], {"confirmResize": None}).status_code == 204
    wait_until(lambda: not unsettled(url), "every resize to be confirmed", 60)


@pytest.mark.timeout(600)
def test_a_cloud_that_is_killed_while_servers_move(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    moment = random.Random(seed)
    with start(tmp_path, port):
        image = image_of(url)
        wait_until(lambda: hosts_known(url) == HOSTS, "the hosts", 60)
        uuids = [uuid for _ in range(SERVERS) for uuid in boot(url, image)]
        wait_until(lambda: not unsettled(url), "the servers", 60)
        assert {server["status"] for server in servers(url)} == {"ACTIVE"}
    accepted = 0
    for number in range(KILLS):
        service = start(tmp_path, port)
        movers = Movers(url, uuids, seed + number)
        time.sleep(moment.uniform(1.0, 4.0))
        service.kill()
        movers.stop()
        accepted += movers.accepted
    assert accepted > KILLS, "hardly anything moved"
    with start(tmp_path, port) as service:
        for number in range(1, HOSTS + 1):
            declare(url, f"fake-{number}", dead=False)
        settle(url)
        found = {server["id"]: server for server in servers(url)}
        with contextlib.suppress(NotReadyError):
            wait_until(lambda: copies(tmp_path) == homes(found), "hosts to have just their servers", 60)
        assert copies(tmp_path) == homes(found)
        database = tmp_path / "data" / "moorage.sqlite"
        wait_until(lambda: not rows(database, UNFINISHED), "the ledger to be empty", 60)
        statuses = {server["status"] for server in found.values()}
        assert statuses <= AT_REST, (statuses, service.log_tail())
    check_books(database, found)


def hosts_known(url: str) -> int:
    listed = requests.get(f"{url}/v2.1/os-hypervisors", headers=HEADERS, timeout=10)
    return len(listed.json()["hypervisors"])


def homes(found: dict[str, Any]) -> dict[str, list[str]]:
    """Where the API says that each server is, of those that are anywhere."""
    hosts = {uuid: server["OS-EXT-SRV-ATTR:host"] for uuid, server in found.items()}
    return {uuid: [host] for uuid, host in hosts.items() if host is not None}


def copies(directory: Path) -> dict[str, list[str]]:
    """The hosts that have each server, by their own records."""
    held: dict[str, list[str]] = {}
    for path in sorted((directory / "data" / "agents").glob("*/fake-servers.sqlite")):
        for uuid in rows(path, "SELECT uuid FROM servers"):
            held.setdefault(uuid, []).append(path.parent.name)
    return held


def check_books(database: Path, found: dict[str, Any]) -> None:
    """Each server holds its flavor on its host's node, and nobody else holds anything.

    No image waits for data; those that servers are shelved in are there.
    """
    query = """SELECT c.uuid, p.name, k.name, a.used FROM allocations a
        JOIN consumers c ON a.consumer_id = c.id
        JOIN providers p ON a.provider_id = p.id JOIN resource_classes k ON a.class_id = k.id"""
    with sqlite3.connect(database) as file:
        held = {(uuid, host, name): used for uuid, host, name, used in file.execute(query)}
        active = file.execute("SELECT count(*) FROM migrations WHERE active").fetchone()[0]
        (cores,) = file.execute("SELECT sum(cores) FROM quota_usage").fetchone()
    expected = {
        (uuid, server["OS-EXT-SRV-ATTR:host"], name): server["flavor"][size]
        for uuid, server in found.items()
        for name, size in (("VCPU", "vcpus"), ("MEMORY_MB", "ram"), ("DISK_GB", "disk"))
        if server["OS-EXT-SRV-ATTR:host"] is not None
    }
    shelved = sum(server["OS-EXT-SRV-ATTR:host"] is None for server in found.values())
    assert rows(database, "SELECT uuid FROM images WHERE status <> 'active'") == set()
    assert len(rows(database, "SELECT uuid FROM images WHERE name LIKE '%-shelved'")) == shelved
    assert held == expected
    assert rows(database, "SELECT server_uuid FROM addresses") == set(found)
    assert active == 0
    assert cores == sum(server["flavor"]["vcpus"] for server in found.values())
