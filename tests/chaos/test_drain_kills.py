"""Kill a whole cloud while a host is emptied, while a dead one is, while servers are spread again: each
server is somewhere, just once.

`CHAOS_DRAINED` says how many servers there are, as `make chaos` does.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.chaos.test_boot_kills import HEADERS, boot, image_of, rows, servers
from tests.chaos.test_move_kills import (
    HOSTS,
    UNFINISHED,
    check_books,
    copies,
    declare,
    homes,
    hosts_known,
    start,
    unsettled,
)
from tests.support.processes import NotReadyError, free_port, wait_until

SERVERS = int(os.environ.get("CHAOS_DRAINED", "24"))
KILLS = max(2, SERVERS // 20)
EMPTIED = "fake-1"


def begin(url: str, way: str) -> str:
    return post(f"{url}/v2.1/moorage-drains", {"drain": {"host": EMPTIED, "way": way, "max_parallel": 4}})


def begin_rebalance(url: str) -> str:
    """A third of the servers shall come back to the host that was emptied."""
    found = servers(url)
    placed = [(server["id"], server["OS-EXT-SRV-ATTR:host"]) for server in found]
    away = [(uuid, host) for uuid, host in placed if host != EMPTIED][: len(found) // 3]
    moves = [{"server": uuid, "source": host, "target": EMPTIED} for uuid, host in away]
    return post(f"{url}/v2.1/moorage-rebalances", {"rebalance": {"moves": moves, "max_parallel": 2}})


def post(path: str, body: Any) -> str:
    reply = requests.post(path, json=body, headers=HEADERS, timeout=10)
    assert reply.status_code == 202, reply.text
    return str(reply.json()["drain"]["id"])


def show(url: str, drain_id: str) -> Any:
    path = f"{url}/v2.1/moorage-drains/{drain_id}"
    return requests.get(path, headers=HEADERS, timeout=10).json()["drain"]


def set_host(url: str, **fields: Any) -> None:
    listed = requests.get(f"{url}/v2.1/os-services?host={EMPTIED}", headers=HEADERS, timeout=10)
    (service,) = listed.json()["services"]
    path = f"{url}/v2.1/os-services/{service['id']}"
    assert requests.put(path, json=fields, headers=HEADERS, timeout=10).ok


@pytest.mark.timeout(300 + 5 * SERVERS)
def test_a_cloud_that_is_killed_while_a_host_is_emptied(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    seed = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(10**6)))
    print(f"seed {seed}")
    chance = random.Random(seed)
    with start(tmp_path, port):
        image = image_of(url)
        wait_until(lambda: hosts_known(url) == HOSTS, "the hosts", 60)
        for _ in range(SERVERS):
            boot(url, image, availability_zone=f"nova:{EMPTIED}")
        wait_until(lambda: not unsettled(url), "the servers", 120)
        assert {server["OS-EXT-SRV-ATTR:host"] for server in servers(url)} == {EMPTIED}
        drain_id = begin(url, "auto")
    drained = survive(tmp_path, port, drain_id, chance)
    assert drained["counts"]["moved"] + drained["counts"]["staying"] == SERVERS
    assert drained["counts"]["moved"] > SERVERS * 3 // 4
    assert all(one["reason"] for one in drained["servers"] if one["state"] == "staying")

    with start(tmp_path, port):
        set_host(url, status="enabled")
        for _ in range(SERVERS // 4):
            boot(url, image_of(url), availability_zone=f"nova:{EMPTIED}")
        wait_until(lambda: not unsettled(url), "more servers", 60)
        declare(url, EMPTIED, dead=True)
        drain_id = begin(url, "evacuate")
    survive(tmp_path, port, drain_id, chance)

    with start(tmp_path, port):
        set_host(url, status="enabled")
        drain_id = begin_rebalance(url)
    rebalanced = survive(tmp_path, port, drain_id, chance, kills=1)
    assert rebalanced["counts"]["moved"] > len(rebalanced["servers"]) * 3 // 4


def survive(directory: Path, port: int, drain_id: str, chance: random.Random, *, kills: int = KILLS) -> Any:
    """Kill the cloud again and again until the drain is at its end; the drain, once the books are checked."""
    url = f"http://127.0.0.1:{port}"
    for _ in range(kills):
        with start(directory, port) as service:
            time.sleep(chance.uniform(0.5, 2.5))
            print(Counter(one["state"] for one in show(url, drain_id)["servers"]))
            service.kill()
    with start(directory, port):
        wait_until(lambda: show(url, drain_id)["finished_at"] is not None, "the drain's end", 240)
        drain = show(url, drain_id)
        declare(url, EMPTIED, dead=False)
        wait_until(lambda: not unsettled(url), "every server to settle", 60)
        found = {server["id"]: server for server in servers(url)}
        with contextlib.suppress(NotReadyError):
            wait_until(lambda: copies(directory) == homes(found), "hosts to have just their servers", 60)
        assert copies(directory) == homes(found)
        check_places(drain, {uuid: host for uuid, (host,) in homes(found).items()})
        database = directory / "data" / "moorage.sqlite"
        wait_until(lambda: not rows(database, UNFINISHED), "the ledger to be empty", 60)
    check_books(database, found)
    return drain


def check_places(drain: Any, hosts: dict[str, str]) -> None:
    """What is told to have moved has, and what is told to stay has not."""
    if drain["goal"] is None:
        on_host = {uuid for uuid, host in hosts.items() if host == EMPTIED}
        assert on_host == {one["id"] for one in drain["servers"] if one["state"] == "staying"}
        return
    for one in drain["servers"]:
        assert hosts[one["id"]] == {"moved": one["target"], "staying": one["source"]}[one["state"]]
