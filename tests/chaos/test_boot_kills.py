"""Kill a whole cloud while servers come and go; when it is back, nothing is stuck and nothing leaks."""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import threading
import time
from pathlib import Path
from typing import Any

import requests

from tests.support.processes import Service, answers, free_port, start_service, wait_until

MOORAGE = Path(sys.executable).parent / "moorage"
HEADERS = {"x-auth-token": "admin", "openstack-api-version": "compute 2.96"}
SETTINGS = """
[quota]
instances = -1
cores = -1
ram = -1
[agent]
heartbeat_interval = 0.5
inventory_interval = 0.5
[conductor]
audit_interval = 1
audit_grace = 1
[fake]
faults = spawn:delay=0.05+fail_here@0.1
"""
KILLS = int(os.environ.get("AUDIT_KILLS", "4"))
SETTLED = {"ACTIVE", "ERROR", "SHUTOFF"}


class Crowd:
    """Users who make and delete servers, whatever the cloud answers."""

    def __init__(self, url: str, seed: int) -> None:
        self._url = url
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._live, daemon=True) for _ in range(4)]
        for thread in self._threads:
            thread.start()

    def _live(self) -> None:
        mine: list[str] = []
        image = ""
        while not self._stop.is_set():
            try:
                image = image or image_of(self._url)
                if mine and self._random.random() < 0.4:
                    uuid = mine.pop(self._random.randrange(len(mine)))
                    requests.delete(f"{self._url}/v2.1/servers/{uuid}", headers=HEADERS, timeout=10)
                else:
                    mine += boot(self._url, image)
            except (requests.RequestException, AssertionError):
                time.sleep(0.05)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)


def image_of(url: str) -> str:
    images = requests.get(f"{url}/image/v2/images", headers=HEADERS, timeout=10).json()["images"]
    return next(str(image["id"]) for image in images if "cirros" in image["name"])


def boot(url: str, image: str, **fields: str) -> list[str]:
    server = {"name": "s", "flavorRef": "1", "imageRef": image, "networks": "auto", **fields}
    answer = requests.post(f"{url}/v2.1/servers", json={"server": server}, headers=HEADERS, timeout=10)
    assert answer.status_code == 202
    return [answer.json()["server"]["id"]]


def start(directory: Path, port: int) -> Service:
    configuration = directory / "moorage.conf"
    configuration.write_text(SETTINGS)
    command: list[str | Path] = [MOORAGE, "up", "--data", directory / "data", "--auth", "none"]
    command += ["--placement-port", str(free_port()), "--compute-port", str(port), "--hosts", "3"]
    command += ["--config", configuration]
    return start_service(command, port, directory / "up.log", ready=lambda: answers(port))


def servers(url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    marker = ""
    while True:
        page = requests.get(f"{url}/v2.1/servers/detail?limit=500{marker}", headers=HEADERS, timeout=30)
        rows = page.json()["servers"]
        if not rows:
            return found
        found += rows
        marker = f"&marker={rows[-1]['id']}"


def unsettled(url: str) -> list[str]:
    return [
        server["id"]
        for server in servers(url)
        if server["status"] not in SETTLED or server["OS-EXT-STS:task_state"] is not None
    ]


def rows(path: Path, query: str) -> set[str]:
    with sqlite3.connect(path) as file:
        return {row[0] for row in file.execute(query)}


def audit(url: str) -> None:
    """All the while one was made every second; this one has all that is left to itself."""
    begun = requests.post(f"{url}/v2.1/moorage-audits", json={"audit": {}}, headers=HEADERS, timeout=10)
    path = f"{url}/v2.1/moorage-audits/{begun.json()['audit']['id']}"

    def done() -> bool:
        shown: str = requests.get(path, headers=HEADERS, timeout=10).json()["audit"]["stage"]
        return shown == "done"

    wait_until(done, "the audit", 60)


def test_a_cloud_that_is_killed_again_and_again(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    moment = random.Random(seed)
    for number in range(KILLS):
        service = start(tmp_path, port)
        crowd = Crowd(url, seed + number)
        time.sleep(moment.uniform(0.5, 3.0))
        service.kill()
        crowd.stop()
    with start(tmp_path, port) as service:
        wait_until(lambda: not unsettled(url), "every server to settle", 90)
        living = {server["id"] for server in servers(url) if server["status"] != "ERROR"}
        assert living, service.log_tail()
        audit(url)
    database = tmp_path / "data" / "moorage.sqlite"
    made = rows(database, "SELECT uuid FROM audits WHERE finished_at IS NOT NULL")
    told = rows(database, "SELECT sentence FROM audit_findings WHERE confirmed_at IS NOT NULL")
    print(f"{KILLS} kills, {len(made)} audits, {len(told)} false findings")
    assert told == set()
    held = "SELECT DISTINCT c.uuid FROM consumers c JOIN allocations a ON a.consumer_id = c.id"
    assert rows(database, held) == living
    assert rows(database, "SELECT server_uuid FROM addresses") == living
    agents = sorted((tmp_path / "data" / "agents").glob("*/fake-servers.sqlite"))
    running = [rows(path, "SELECT uuid FROM servers") for path in agents]
    assert sum(map(len, running)) == len(set().union(*running)), "a server runs on two hosts"
    assert set().union(*running) == living
