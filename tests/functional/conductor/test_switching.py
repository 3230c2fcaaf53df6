"""A host changes the way in which it gets machines, and its servers live on; Ironic is simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.drivers.ironic.reservations import pool
from tests.functional.conductor.metal_yard import MetalCloud, MetalYard
from tests.support import simulated_ironic
from tests.support.processes import wait_until
from tests.support.simulated_ironic import SimulatedIronic

FIRST, SECOND = "fake-1", "fake-2"
POOL = pool.uuid_of(FIRST)


class SwitchingYard(MetalYard):
    """One flavor serves both ways: it asks for a machine, and for no seat."""

    def make_flavor(self) -> None:
        reserve, self.reserve = self.reserve, False
        super().make_flavor()
        self.reserve = reserve

    def end(self, host: str) -> None:
        """As SIGKILL leaves it: nobody is told of anything."""
        self.cloud.agents.pop(host).stop()

    def begin(self, host: str, *, reserve: bool) -> None:
        assert isinstance(self.cloud, MetalCloud)
        self.cloud.ways[host] = reserve
        agent = self.cloud.agents[host] = self.cloud.agent(host)
        agent.start()

    def nodes(self) -> set[str]:
        return {one["id"] for one in self.get("/v2.1/os-hypervisors")["hypervisors"]}

    def node_of(self, server: str) -> str:
        name = self.server(server)["OS-EXT-SRV-ATTR:hypervisor_hostname"]
        listed = self.get("/v2.1/os-hypervisors")["hypervisors"]
        return str(next(one["id"] for one in listed if one["hypervisor_hostname"] == name))

    def reboot(self, server: str) -> None:
        reply = self.api.simulate_post(f"/v2.1/servers/{server}/action", json={"reboot": {"type": "HARD"}})
        assert reply.status_code == 202, reply.text
        self.await_status([server], "ACTIVE")
        self.await_rest()

    def allocations(self, server: str) -> dict[str, Any]:
        return self.client.allocations(server)[0]


@pytest.fixture
def ironic() -> Iterator[SimulatedIronic]:
    with simulated_ironic.running() as made:
        yield made


Make = Callable[..., SwitchingYard]


@pytest.fixture
def metal(ironic: SimulatedIronic, database_url: str, tmp_path: Path) -> Iterator[Make]:
    made: list[SwitchingYard] = []

    def make(machines: int, *, reserve: bool) -> SwitchingYard:
        for number in range(machines):
            ironic.enrol(f"a-{number}", "a")
        made.append(SwitchingYard(database_url, tmp_path / "agents", ironic, reserve=reserve))
        return made[0]

    yield make
    for one in made:
        one.stop()


def test_a_server_whose_machine_was_chosen_lives_on_when_its_host_reserves(
    metal: Make, ironic: SimulatedIronic
) -> None:
    cloud = metal(3, reserve=False)
    (server,) = cloud.boot_metal(1)
    cloud.await_status([server], "ACTIVE")
    (machine,), before = ironic.holders(server), cloud.allocations(server)
    cloud.end(FIRST)
    cloud.begin(FIRST, reserve=True)
    wait_until(lambda: cloud.nodes() == {POOL, machine}, "the nodes of free machines to go", 60)
    cloud.await_offer(POOL, 2)
    cloud.reboot(server)
    assert ironic.holders(server) == [machine]
    assert (cloud.node_of(server), cloud.allocations(server)) == (machine, before)
    (other,) = cloud.boot_metal(1)
    cloud.await_status([other], "ACTIVE")
    assert (cloud.node_of(other), list(ironic.reservations)) == (POOL, [other])
    cloud.delete(server)
    cloud.await_gone([server])
    wait_until(lambda: cloud.nodes() == {POOL}, "its node to go with it", 60)
    cloud.await_offer(POOL, 3)
    assert cloud.holders() == {other}


def test_a_server_whose_machine_was_reserved_lives_on_when_the_scheduler_chooses(
    metal: Make, ironic: SimulatedIronic
) -> None:
    cloud = metal(3, reserve=True)
    cloud.die(SECOND)
    (server,) = cloud.boot_metal(1)
    cloud.await_status([server], "ACTIVE")
    (machine,), before = ironic.holders(server), cloud.allocations(server)
    cloud.end(FIRST)
    cloud.begin(FIRST, reserve=False)
    machines = set(ironic.nodes)
    wait_until(lambda: machines <= cloud.nodes(), "the machines to be nodes", 60)
    wait_until(lambda: sum(map(cloud.offered, machines)) == 2, "the free ones to be offered", 60)
    cloud.await_offer(POOL, 1)
    cloud.reboot(server)
    assert (ironic.holders(server), cloud.node_of(server)) == ([machine], POOL)
    assert cloud.allocations(server) == before
    others = cloud.boot_metal(2)
    cloud.await_status(others, "ACTIVE")
    assert {cloud.node_of(one) for one in others} == machines - {machine}
    cloud.delete(server)
    cloud.await_gone([server])
    wait_until(lambda: POOL not in cloud.nodes(), "the pool to go with its last server", 60)
    cloud.await_offer(machine, 1)
    assert (ironic.reservations, cloud.holders()) == ({}, set(others))


def test_while_hosts_differ_each_looks_after_its_own_and_goes_on_for_the_other(
    metal: Make, ironic: SimulatedIronic
) -> None:
    """No machine is two servers', none is swept that is in use, and a pool has a keeper, whatever its way."""
    cloud = metal(4, reserve=True)
    servers = cloud.boot_metal(2)
    cloud.await_status(servers, "ACTIVE")
    reserved = {server: ironic.holders(server) for server in servers}
    hosts = {cloud.host_of(server): server for server in servers}
    assert set(hosts) == {FIRST, SECOND}
    cloud.end(SECOND)
    cloud.begin(SECOND, reserve=False)
    machines = set(ironic.nodes)
    wait_until(lambda: machines <= cloud.nodes(), "the machines to be nodes of the second", 60)
    more = cloud.boot_metal(2)
    cloud.await_status(more, "ACTIVE")
    holders = [ironic.holders(server) for server in (*servers, *more)]
    assert sorted(map(len, holders)) == [1] * 4
    assert len({found[0] for found in holders}) == 4
    cloud.die(FIRST)
    wait_until(lambda: cloud.host_of(hosts[FIRST]) == SECOND, "the other to look after its pool", 60)
    cloud.reboot(hosts[FIRST])
    assert {server: ironic.holders(server) for server in servers} == reserved
    for server in (*servers, *more):
        cloud.delete(server)
    cloud.await_gone([*servers, *more])
    assert (ironic.reservations, cloud.holders()) == ({}, set())


def test_a_build_that_was_sent_to_a_machine_is_finished_there(metal: Make, ironic: SimulatedIronic) -> None:
    """The host ends before it has heard of it, and reserves when it is back."""
    cloud = metal(2, reserve=False)
    cloud.end(FIRST)
    (server,) = cloud.boot_metal(1)
    wait_until(lambda: bool(cloud.allocations(server)), "a machine to be chosen", 60)
    (chosen,) = cloud.allocations(server)
    cloud.begin(FIRST, reserve=True)
    cloud.await_status([server], "ACTIVE")
    assert (ironic.holders(server), ironic.reservations) == ([chosen], {})
    wait_until(lambda: cloud.nodes() == {POOL, chosen}, "the free node to go", 60)
    cloud.delete(server)
    cloud.await_gone([server])
    wait_until(lambda: cloud.nodes() == {POOL}, "its node to go", 60)
