"""Machines that are reserved in a real Ironic, by hosts that want the same ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from oslo_config import cfg

from moorage.cli import settings as command_settings
from moorage.core import uuids
from moorage.drivers.contract import RUNNING, DriverClosedError, DriverError, NoRoomError, ServerSpec
from moorage.drivers.ironic import selection
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations import pool
from moorage.drivers.ironic.reservations.choosing import ChoosingDriver
from moorage.drivers.ironic.reservations.reserving import ReservingDriver
from moorage.drivers.ironic.settings import IronicSettings
from moorage.drivers.shared_nodes import Held
from tests.integration.ironic.lines import client, port_of, provisions
from tests.lab.ironic import service as ironic
from tests.lab.ironic.nodes import Nodes
from tests.lab.ironic.older import OlderIronic
from tests.support.faulty_proxy import Fault, FaultyProxy
from tests.support.postgres import Postgres
from tests.support.processes import wait_until

LOST = Fault(works=True, method="POST", path="/v1/allocations", times=1)


@pytest.fixture(scope="module")
def metal(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Nodes]:
    """Two nodes of group a, of which one is fast, and one of group b."""
    with ironic.running(tmp_path_factory.mktemp("ironic"), postgres, deploy_delay=0) as nodes:
        nodes.enrol("a-1", "a", traits=["CUSTOM_FAST"])
        nodes.enrol("a-2", "a")
        nodes.enrol("b-1", "b")
        yield nodes
        postgres.drop_database("ironic")


def reserving(port: int, host: str, group: str = "a") -> ReservingDriver:
    """The driver of a host that was told to keep its pool."""
    made = ReservingDriver(
        client(port), Partition(group), host, IronicSettings(poll_interval=0.2, retries=300)
    )
    made.look()
    made.keep({pool.uuid_of(host)})
    return made


def spec(metal: Nodes, host: str, candidate: Any = None, trait: str = "") -> ServerSpec:
    source = {"baremetal:image_source": metal.image("image"), "baremetal:image_type": "whole-disk"}
    specs = {"resources:CUSTOM_GOLD": "1"} | ({f"trait:{trait}": "required"} if trait else {})
    flavor = {"vcpus": 1, "ram": 64, "disk": 1, "extra_specs": specs}
    image = {"id": "image-1", "properties": source}
    hints = {} if candidate is None else {"candidate_node": candidate}
    return ServerSpec(uuids.generate(), "s", "p", "u", pool.uuid_of(host), flavor, image, hints=hints)


def machine(metal: Nodes, server: ServerSpec) -> str | None:
    """The name of the node that has the server, as Ironic says."""
    found = [node["name"] for node in metal.all().values() if node["instance_uuid"] == server.uuid]
    return found[0] if found else None


def reservations(metal: Nodes) -> list[str]:
    return [one["uuid"] for one in metal.listed("allocations")]


def wait_until_clean(metal: Nodes) -> None:
    def clean() -> bool:
        return all(node["provision_state"] == "available" for node in metal.all().values())

    assert reservations(metal) == []
    wait_until(clean, "the cleaning", 60)


def test_of_two_hosts_that_want_the_last_machine_one_gets_it(metal: Nodes) -> None:
    drivers = [reserving(port_of(metal), host, "b") for host in ("b-1", "b-2")]
    wanted = [spec(metal, "b-1"), spec(metal, "b-2")]
    outcomes: dict[str, object] = {}

    def deploy(driver: ReservingDriver, server: ServerSpec) -> None:
        try:
            outcomes[server.uuid] = driver.spawn(server)
        except DriverError as error:
            outcomes[server.uuid] = error

    threads = [threading.Thread(target=deploy, args=pair) for pair in zip(drivers, wanted, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (winner,) = [one for one in wanted if outcomes[one.uuid] == RUNNING]
    (loser,) = [one for one in wanted if one is not winner]
    assert isinstance(outcomes[loser.uuid], NoRoomError)
    assert reservations(metal) == [winner.uuid]
    mine = drivers[wanted.index(winner)]
    other = drivers[wanted.index(loser)]
    assert (mine.servers(), other.servers()) == ({winner.uuid: RUNNING}, {})
    other.look()
    assert [offered(one) for one in (mine, other)] == [1, 0]
    other.destroy(winner.uuid, loser.node_uuid)
    assert machine(metal, winner) == "b-1", "it is another host's"
    mine.destroy(winner.uuid, winner.node_uuid)
    wait_until_clean(metal)


def offered(driver: ReservingDriver) -> int:
    """What a host says that servers may have of it, those that are there included."""
    (node,) = driver.nodes()
    unit = node.inventories["CUSTOM_GOLD"]
    return unit.total - unit.reserved


def test_a_crash_between_reservation_and_deployment_makes_no_second_reservation(
    metal: Nodes, proxy: FaultyProxy
) -> None:
    first = reserving(proxy.port, "host")
    server = spec(metal, "host")
    ended: list[BaseException] = []

    def deploy() -> None:
        try:
            first.spawn(server)
        except DriverClosedError as error:
            ended.append(error)

    proxy.fail(Fault(503, b"{}", method="PUT", path="/states/provision"))
    thread = threading.Thread(target=deploy)
    thread.start()
    wait_until(lambda: provisions(proxy) > 0, "the deployment", 60)
    first.close()
    thread.join(60)
    assert len(ended) == 1
    assert reservations(metal) == [server.uuid]
    proxy.fail(None)
    second = reserving(proxy.port, "host")
    assert second.spawn(server) == RUNNING
    assert second.spawn(server) == RUNNING, "done already"
    assert reservations(metal) == [server.uuid]
    assert proxy.requests.count(("POST", "/v1/allocations")) == 1
    assert second.reboot(server.uuid, server.node_uuid, hard=True) == RUNNING
    assert second.power(server.uuid, server.node_uuid) == RUNNING
    second.destroy(server.uuid, server.node_uuid)
    second.destroy(server.uuid, server.node_uuid)
    wait_until_clean(metal)


def test_a_machine_has_what_the_server_asks_for(metal: Nodes) -> None:
    driver = reserving(port_of(metal), "host")
    (node,) = driver.nodes()
    assert (node.name, "CUSTOM_FAST" in node.traits) == ("host", True)
    for wanted, expected in (
        (spec(metal, "host", trait="CUSTOM_FAST"), "a-1"),
        (spec(metal, "host", candidate="a-2"), "a-2"),
    ):
        driver.spawn(wanted)
        assert machine(metal, wanted) == expected
        driver.destroy(wanted.uuid, wanted.node_uuid)
        wait_until_clean(metal)
        driver.look()
    with pytest.raises(NoRoomError, match="CUSTOM_GOLD, CUSTOM_SLOW"):
        driver.spawn(spec(metal, "host", trait="CUSTOM_SLOW"))
    with pytest.raises(NoRoomError, match="b-1: it is not this host's to give"):
        driver.spawn(spec(metal, "host", candidate=["b-1"]))
    assert reservations(metal) == []


def test_a_machine_that_fails_is_left_for_another(metal: Nodes, proxy: FaultyProxy) -> None:
    driver = reserving(proxy.port, "host")
    server = spec(metal, "host")
    proxy.fail(Fault(400, b"{}", method="GET", path="/validate", times=1))
    assert driver.spawn(server) == RUNNING
    assert reservations(metal) == [server.uuid]
    assert proxy.requests.count(("POST", "/v1/allocations")) == 2
    driver.destroy(server.uuid, server.node_uuid)
    wait_until_clean(metal)


def test_a_peer_goes_on_with_what_a_host_reserved(metal: Nodes, proxy: FaultyProxy) -> None:
    first, heir = (reserving(proxy.port, host) for host in ("host", "heir"))
    server = spec(metal, "host")
    proxy.fail(LOST)
    first.spawn(server)
    heir.look()
    assert heir.servers() == {}
    with pytest.raises(DriverError, match="not this host's"):
        heir.reboot(server.uuid, server.node_uuid, hard=True)
    heir.keep({pool.uuid_of("host"), pool.uuid_of("heir")})
    first.keep(set())
    assert (first.servers(), heir.servers()) == ({}, {server.uuid: RUNNING})
    inherited = {node.name: node for node in heir.nodes()}["host"]
    assert inherited.inventories["CUSTOM_GOLD"].total == 1
    first.destroy(server.uuid, server.node_uuid)
    assert machine(metal, server) is not None
    assert heir.reboot(server.uuid, server.node_uuid, hard=True) == RUNNING
    moved = ServerSpec(server.uuid, "s", "p", "u", pool.uuid_of("heir"), server.flavor, server.image)
    assert heir.spawn(moved) == RUNNING, "in the other pool, it has to leave the first one"
    assert reservations(metal) == [server.uuid]
    heir.destroy(server.uuid, moved.node_uuid)
    wait_until_clean(metal)


def configuration(selection: str) -> cfg.ConfigOpts:
    overrides = {"agent.host": "host", "ironic.partition_key": "a", "ironic.node_selection": selection}
    return command_settings.read(None, overrides)


def test_an_ironic_without_reservations_has_its_nodes_offered_one_by_one(
    metal: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    older = OlderIronic(port_of(metal), (1, 51))
    older.start()
    try:
        chosen = selection.driver(configuration("reservation"), "host", client(older.port))
        assert isinstance(chosen, ChoosingDriver)
        assert "DEPRECATED" in caplog.text
        chosen.look()
        assert len(chosen.eligible()) == 2
        with pytest.raises(DriverError, match="too old"):
            ReservingDriver(client(older.port), Partition("a"), "host").look()
        older.newest = (1, 52)
        able = selection.driver(configuration("reservation"), "host", client(older.port))
        assert not isinstance(able, ChoosingDriver)
        able.keep({pool.uuid_of("host")})
        server = spec(metal, "host")
        able.spawn(server)
        able.destroy(server.uuid, server.node_uuid)
        wait_until_clean(metal)
    finally:
        older.stop()


def test_a_server_lives_on_when_its_host_gets_machines_in_the_other_way(metal: Nodes) -> None:
    """What it is told to keep, a restart tells it anew: the node of the one, and the pool of the other."""
    asked = client(port_of(metal))
    choosing = selection.driver(configuration("scheduler"), "host", asked)
    assert isinstance(choosing, ChoosingDriver)
    choosing.look()
    node = next(uuid for uuid, one in choosing.eligible().items() if one.free)
    choosing.keep(choosing.eligible())
    server = msgspec.structs.replace(spec(metal, "host"), node_uuid=node)
    choosing.spawn(server)
    reserving = selection.driver(configuration("reservation"), "host", asked)
    assert not isinstance(reserving, ChoosingDriver)
    reserving.look()
    assert reserving.eligible().keys() == {pool.uuid_of("host"), node}
    reserving.keep(reserving.eligible())
    assert reserving.servers() == {server.uuid: RUNNING}
    assert reserving.reboot(server.uuid, node, hard=True) == RUNNING
    (left,) = [one for one in reserving.nodes() if one.uuid == node]
    assert left.inventories["CUSTOM_GOLD"].reserved == 1
    assert Held(server.uuid, node) in reserving.held()
    other = spec(metal, "host")
    reserving.spawn(other)
    again = selection.driver(configuration("scheduler"), "host", asked)
    again.look()
    assert again.eligible().keys() > {pool.uuid_of("host"), node}
    again.keep(again.eligible())
    assert again.servers() == {server.uuid: RUNNING, other.uuid: RUNNING}
    assert again.reboot(other.uuid, other.node_uuid, hard=True) == RUNNING
    # Were it held for its own node, conductors would take it for a leftover, and have it torn down.
    assert again.held() == {Held(server.uuid, node), Held(other.uuid, pool.uuid_of("host"))}
    again.destroy(other.uuid, other.node_uuid)
    again.destroy(server.uuid, node)
    wait_until_clean(metal)
    again.look()
    left_pool = again.look_up_missing(pool.uuid_of("host"))
    assert left_pool is not None
    assert left_pool.withdrawn, "nothing is in it any more"
    for _ in range(3):
        reserving.look()
    free = reserving.look_up_missing(node)
    assert free is not None
    assert free.withdrawn, "what was a node is none any more"
