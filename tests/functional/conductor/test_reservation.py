"""Hosts that reserve machines of one partition: what users and operators see of it; Ironic is simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.agent.journal import Journal
from moorage.agent.ownership import Ownership
from moorage.agent.service import AgentService, AgentSettings
from moorage.cli.cloud import Cloud
from moorage.db.tables.compute import nodes
from moorage.drivers.ironic import pool
from moorage.drivers.ironic.partition import Partition
from moorage.drivers.ironic.reserving import ReservingDriver
from moorage.drivers.ironic.settings import IronicSettings
from tests.functional.conductor.conftest import Yard
from tests.support import simulated_ironic
from tests.support.processes import wait_until
from tests.support.simulated_ironic import SimulatedIronic

FLAVOR = "gold"
FIRST, SECOND = "fake-1", "fake-2"


class MetalCloud(Cloud):
    """Its hosts reserve machines of the same group."""

    ironic: SimulatedIronic

    def agent(self, host: str) -> AgentService:
        directory = self._data / "agents" / host
        directory.mkdir(parents=True, exist_ok=True)
        settings = replace(AgentSettings.from_conf(self._conf), host=host, driver="ironic")
        quick = IronicSettings(poll_interval=0.05)
        driver = ReservingDriver(self.ironic.client(), Partition("a"), host, quick)
        journal = Journal(directory / "journal.sqlite")
        ownership = Ownership(host, driver)
        return AgentService(settings, driver, self._bus.agent_side(), self._placement, journal, ownership)


class MetalYard(Yard):
    """A cloud of bare metal, in which everybody is one who may see all."""

    make_cloud = MetalCloud

    def make_flavor(self) -> None:
        body = {"id": FLAVOR, "name": FLAVOR, "vcpus": 4, "ram": 64, "disk": 1}
        assert self.api.simulate_post("/v2.1/flavors", json={"flavor": body}).status_code == 200
        specs = {"VCPU": "0", "MEMORY_MB": "0", "DISK_GB": "0", "CUSTOM_GOLD": "1"}
        body = {"extra_specs": {f"resources:{name}": amount for name, amount in specs.items()}}
        path = f"/v2.1/flavors/{FLAVOR}/os-extra_specs"
        assert self.api.simulate_post(path, json=body).status_code == 200

    def boot_metal(self, count: int = 1) -> list[str]:
        return self.boot(count, flavorRef=FLAVOR)

    def host_of(self, uuid: str) -> str:
        return str(self.server(uuid)["OS-EXT-SRV-ATTR:host"])

    def owner_of(self, host: str) -> str:
        """Who looks after the pool of a host."""
        listed = self.get("/v2.1/os-hypervisors/detail")["hypervisors"]
        return str(next(one["service"]["host"] for one in listed if one["hypervisor_hostname"] == host))

    def offered(self, host: str) -> dict[str, int]:
        """What a pool has, whoever uses it, by resource class."""
        with self.placement.picture() as (fleet, _):
            slot = fleet.slot_of_uuid(pool.uuid_of(host))
            assert slot is not None
            found = fleet.inventory(slot)
            return {fleet.names.class_name(name): capacity for name, (capacity, _) in found.items()}

    def set_service(self, host: str, **fields: Any) -> None:
        services = self.get("/v2.1/os-services?binary=nova-compute")["services"]
        identity = next(service["id"] for service in services if service["host"] == host)
        reply = self.api.simulate_put(f"/v2.1/os-services/{identity}", json=fields)
        assert reply.status_code == 200, reply.text

    def die(self, host: str) -> None:
        self.cloud.agents.pop(host).stop()
        self.set_service(host, forced_down=True)

    def come_back(self, host: str) -> None:
        self.set_service(host, forced_down=False)
        agent = self.cloud.agents[host] = self.cloud.agent(host)
        agent.start()


@pytest.fixture
def ironic() -> Iterator[SimulatedIronic]:
    with simulated_ironic.running() as made:
        yield made


@pytest.fixture
def metal(ironic: SimulatedIronic, database_url: str, tmp_path: Path) -> Iterator[Callable[[int], MetalYard]]:
    made: list[MetalYard] = []

    def make(machines: int) -> MetalYard:
        for number in range(machines):
            ironic.enrol(f"a-{number}", "a")
        ironic.enrol("stranger", "b")
        MetalCloud.ironic = ironic
        made.append(MetalYard(database_url, tmp_path / "agents", hosts=2))
        made[0].make_flavor()
        return made[0]

    yield make
    for one in made:
        one.stop()


Make = Callable[[int], MetalYard]


def test_servers_are_spread_over_hosts_that_offer_the_same_machines(
    metal: Make, ironic: SimulatedIronic
) -> None:
    cloud = metal(5)
    assert [cloud.offered(host) for host in (FIRST, SECOND)] == [{"CUSTOM_GOLD": 5}] * 2
    servers = cloud.boot_metal(4)
    cloud.await_status(servers, "ACTIVE")
    assert sorted(map(cloud.host_of, servers)) == [FIRST, FIRST, SECOND, SECOND]
    machines = [ironic.holders(server) for server in servers]
    assert sorted(map(len, machines)) == [1] * 4
    assert all(ironic.nodes[found[0]]["conductor_group"] == "a" for found in machines)
    # Each has what is left, and what its own servers have.
    for host in (FIRST, SECOND):
        wait_until(partial(lambda name: cloud.offered(name) == {"CUSTOM_GOLD": 3}, host), "the offers", 30)
    for server in servers:
        cloud.delete(server)
    cloud.await_gone(servers)
    assert (ironic.reservations, cloud.holders()) == ({}, set())
    for host in (FIRST, SECOND):
        wait_until(partial(lambda name: cloud.offered(name) == {"CUSTOM_GOLD": 5}, host), "the offers", 30)


def test_of_two_servers_one_gets_the_last_machine_and_the_other_a_clear_fault(
    metal: Make, ironic: SimulatedIronic
) -> None:
    cloud = metal(1)
    servers = cloud.boot_metal(2)
    shown = cloud.await_status(servers, "ACTIVE", "ERROR")
    (loser,) = [one for one in shown if one["status"] == "ERROR"]
    (winner,) = [one for one in shown if one["status"] == "ACTIVE"]
    assert list(ironic.reservations) == [winner["id"]]
    assert "CUSTOM_GOLD" in loser["fault"]["message"], loser["fault"]
    cloud.await_rest()
    assert cloud.holders() == {winner["id"]}
    with cloud.placement.database.read() as connection:
        blamed = connection.execute(sa.select(sa.func.sum(nodes.c.build_failures))).scalar_one()
    assert blamed == 0


def test_a_peer_looks_after_the_servers_of_a_host_that_is_down_until_it_is_back(
    metal: Make, ironic: SimulatedIronic
) -> None:
    cloud = metal(3)
    servers = cloud.boot_metal(2)
    cloud.await_status(servers, "ACTIVE")
    orphan = next(server for server in servers if cloud.host_of(server) == FIRST)
    before = cloud.client.allocations(orphan)[0]
    cloud.die(FIRST)
    wait_until(lambda: cloud.host_of(orphan) == SECOND, "the peer to take over", 30)
    assert cloud.owner_of(FIRST) == SECOND
    wait_until(lambda: cloud.offered(FIRST) == {"CUSTOM_GOLD": 1}, "nothing more to come there", 30)
    reboot(cloud, orphan)
    (late,) = cloud.boot_metal()
    cloud.await_status([late], "ACTIVE")
    assert cloud.host_of(late) == SECOND
    assert before == cloud.client.allocations(orphan)[0] == {pool.uuid_of(FIRST): {"CUSTOM_GOLD": 1}}
    cloud.come_back(FIRST)
    wait_until(lambda: cloud.host_of(orphan) == FIRST, "the host to have its own again", 30)
    assert cloud.owner_of(FIRST) == FIRST
    reboot(cloud, orphan)
    assert len(ironic.holders(orphan)) == 1
    for server in (*servers, late):
        cloud.delete(server)
    cloud.await_gone([*servers, late])
    assert (ironic.reservations, cloud.holders()) == ({}, set())


def reboot(cloud: MetalYard, server: str) -> None:
    reply = cloud.api.simulate_post(f"/v2.1/servers/{server}/action", json={"reboot": {"type": "HARD"}})
    assert reply.status_code == 202, reply.text
    cloud.await_rest()
    assert cloud.server(server)["status"] == "ACTIVE"
