"""Cells with addresses of their own: one that is full is left for the others, whole and at once."""

from __future__ import annotations

from collections.abc import Callable

from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until

MakeYard = Callable[..., Yard]
RANGES = {"full": "10.0.0.1-10.0.0.1", "roomy": "10.0.1.1-10.0.1.4"}


def with_cells(yard: MakeYard) -> Yard:
    """Five hosts in a cell with a single address, more than are ever tried; one, smaller, in another cell."""
    cloud = yard(hosts=0, **{"pool.ranges": RANGES})
    for cell, vcpus, count in (("full", 16, 5), ("roomy", 4, 1)):
        cloud.conf.set_override("cell", cell, group="agent")
        cloud.conf.set_override("vcpus", vcpus, group="fake")
        for number in range(count):
            host = f"{cell}-{number}"
            agent = cloud.cloud.agents[host] = cloud.cloud.agent(host)
            agent.start()
    wait_until(lambda: cloud.providers() == 6, "the inventories", 60)
    return cloud


def test_a_server_leaves_a_cell_without_addresses_for_another(yard: MakeYard) -> None:
    cloud = with_cells(yard)
    booted = cloud.await_status(cloud.boot(5), "ACTIVE", "ERROR")
    assert [server["status"] for server in booted] == ["ACTIVE"] * 5
    hosts = [server["OS-EXT-SRV-ATTR:host"] for server in booted]
    assert sum(host.startswith("full") for host in hosts) == 1
    given = {server["addresses"]["private"][0]["addr"] for server in booted}
    assert given == {"10.0.0.1", *(f"10.0.1.{number}" for number in range(1, 5))}


def test_when_all_cells_are_full_the_server_says_so_and_holds_nothing(yard: MakeYard) -> None:
    cloud = with_cells(yard)
    first = cloud.boot(5)
    cloud.await_status(first, "ACTIVE")
    (late,) = cloud.boot(1)
    (failed,) = cloud.await_status([late], "ERROR")
    assert "no addresses left" in failed["fault"]["message"]
    cloud.await_rest()
    assert cloud.holders() == cloud.addressed() == set(first)
