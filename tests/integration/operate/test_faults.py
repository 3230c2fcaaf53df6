"""docs/operate/faults.md, fault by fault: the alert fires, and the page's command finds the cause.

A real Prometheus watches meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from moorage.db.tables.compute import quota_usage
from tests.integration.operate.transcripts import PATIENCE, follow
from tests.integration.operate.watched import SMALL_DISK, Watched, fill, watched_cloud
from tests.support import debian, manual, prometheus
from tests.support.manual import Block
from tests.support.processes import wait_until
from tests.support.prometheus import Prometheus

PAGE = "operate/faults.md"
BLOCKS: dict[str, Block] = {block.section: block for block in manual.blocks(PAGE)}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with watched_cloud(tmp_path_factory.mktemp("watched"), with_small_disk=True) as made:
        yield made


@pytest.fixture(scope="module")
def watcher(cloud: Watched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    directory = tmp_path_factory.mktemp("prometheus")
    try:
        with prometheus.watching(directory, cloud.targets) as running:
            wait_until(lambda: len(running.seen()) == len(cloud.targets), "all parts to be seen", PATIENCE)
            yield running
    except debian.Unavailable as error:
        pytest.skip(str(error))


def fires(watcher: Prometheus, alert: str) -> None:
    wait_until(lambda: alert in watcher.firing(), alert, PATIENCE)


def ends(watcher: Prometheus, alert: str) -> None:
    wait_until(lambda: alert not in watcher.firing(), f"the end of {alert}", PATIENCE)


def finds(cloud: Watched, section: str) -> None:
    follow(cloud, BLOCKS[section])


def test_nothing_fires_while_all_is_well(cloud: Watched, watcher: Prometheus) -> None:
    """The conductor's first look at hosts is up to 15 seconds away."""
    cloud.boot("fine")
    wait_until(lambda: not watcher.firing(), "all alerts to end", PATIENCE)


def test_a_driver_hangs(cloud: Watched, watcher: Prometheus) -> None:
    uuid = cloud.boot("hung", metadata={"fake:spawn": "hang"}, availability_zone="nova:host-1")
    fires(watcher, "MoorageOperationsStuck")
    finds(cloud, "A driver hangs")
    cloud.call("POST", f"/servers/{uuid}/action", {"os-resetState": {"state": "error"}})
    ends(watcher, "MoorageOperationsStuck")


def test_an_agent_is_dead(cloud: Watched, watcher: Prometheus) -> None:
    cloud.agents["host-2"].kill()
    fires(watcher, "MoorageHostsDown")
    finds(cloud, "An agent is dead")
    cloud.agents["host-2"].start()
    ends(watcher, "MoorageHostsDown")


def test_there_is_no_room(cloud: Watched) -> None:
    flavor = {"name": "whale", "id": "whale", "ram": 99999999, "vcpus": 1, "disk": 1}
    cloud.call("POST", "/flavors", {"flavor": flavor})
    cloud.boot("whale", flavorRef="whale")
    finds(cloud, "There is no room")


def test_all_hosts_that_could_are_disabled(cloud: Watched) -> None:
    services = cloud.get("/v2.1/os-services?binary=nova-compute")["services"]
    for service in services:
        cloud.call("PUT", f"/os-services/{service['id']}", {"status": "disabled"})
    cloud.boot("nowhere")
    finds(cloud, "All hosts that could are disabled")
    for service in services:
        cloud.call("PUT", f"/os-services/{service['id']}", {"status": "enabled"})


def test_placement_hangs(cloud: Watched) -> None:
    cloud.placement.freeze()
    finds(cloud, "Placement hangs")
    cloud.placement.thaw()


def test_placement_is_away(cloud: Watched, watcher: Prometheus) -> None:
    cloud.placement.kill()
    fires(watcher, "MooragePlacementUnreachable")
    cloud.placement.start()


def test_conductors_are_away(cloud: Watched, watcher: Prometheus) -> None:
    cloud.conductors[0].kill()
    fires(watcher, "MoorageNoConductor")
    cloud.boot("orphan")
    finds(cloud, "Conductors are away")
    cloud.conductors[0].start()
    ends(watcher, "MoorageNoConductor")


def test_a_disk_is_full(cloud: Watched, watcher: Prometheus) -> None:
    directory = cloud.directory / SMALL_DISK
    if not directory.is_mount():
        pytest.skip("only root may mount a small disk")
    agent = cloud.agents[SMALL_DISK]
    agent.end()  # with what its files have in reserve
    filling = fill(directory, spare=250_000)
    agent.start()
    cloud.boot("unwritten", availability_zone=f"nova:{SMALL_DISK}", min_count=40)
    finds(cloud, "A disk is full")
    fires(watcher, "MoorageOperationsStuck")
    filling.unlink()
    ends(watcher, "MoorageOperationsStuck")
    uuid = cloud.boot("written", availability_zone=f"nova:{SMALL_DISK}")
    wait_until(lambda: cloud.status(uuid) == "ACTIVE", "a boot", PATIENCE)


def test_things_do_not_agree(cloud: Watched, watcher: Prometheus) -> None:
    with sa.create_engine(cloud.database_url).begin() as connection:
        connection.execute(sa.update(quota_usage).values(cores=quota_usage.c.cores + 7))
    finds(cloud, "Things don't agree")
    fires(watcher, "MoorageDifferences")


def test_the_database_is_away(cloud: Watched, watcher: Prometheus) -> None:
    cloud.database.end()
    fires(watcher, "MoorageDatabaseUnreachable")
    finds(cloud, "The database is away")
    cloud.database.start_again()


def test_the_broker_is_away(cloud: Watched, watcher: Prometheus) -> None:
    """Last, since nobody starts it again."""
    cloud.broker.end()
    fires(watcher, "MoorageBrokerUnreachable")
    finds(cloud, "The broker is away")


def test_every_fault_of_the_page_has_a_test() -> None:
    source = Path(__file__).read_text()
    assert [section for section in BLOCKS if f'finds(cloud, "{section}")' not in source] == []
    assert len(BLOCKS) == 10
