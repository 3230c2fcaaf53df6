"""What was ordered before a driver froze reaches Ironic when all has changed: it does no harm there."""

from __future__ import annotations

import base64
import gzip
import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
import pycdlib
import pytest

from moorage.core import uuids
from moorage.drivers.contract import RUNNING, DriverError, ServerSpec
from moorage.drivers.ironic import pool
from moorage.drivers.ironic.driver import IronicDriver
from moorage.drivers.ironic.partition import Partition
from moorage.drivers.ironic.reserving import ReservingDriver
from moorage.drivers.ironic.settings import IronicSettings
from tests.integration.ironic.lines import client, port_of, provisions
from tests.lab.ironic import service as ironic
from tests.lab.ironic.nodes import Nodes
from tests.support.faulty_proxy import Fault, FaultyProxy
from tests.support.postgres import Postgres
from tests.support.processes import wait_until

Driver = IronicDriver | ReservingDriver
MODES = ("scheduler", "reservation")
SETTINGS = IronicSettings(poll_interval=0.1, retries=100)


@pytest.fixture(scope="module")
def metal(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[Nodes]:
    """A single node: whoever comes next gets the one that was just left."""
    with ironic.running(tmp_path_factory.mktemp("ironic"), postgres, ("a",), deploy_delay=0) as nodes:
        nodes.enrol("a-1", "a")
        yield nodes
        postgres.drop_database("ironic")


@pytest.fixture
def node(metal: Nodes) -> Iterator[str]:
    (found,) = metal.all()
    yield found
    shown = metal.show(found)
    if shown["provision_state"] != "available" or shown["instance_uuid"] is not None:
        metal.change(found, protected=False)
        metal.ask("PATCH", f"nodes/{found}", [{"op": "remove", "path": "/instance_uuid"}])
        if shown["provision_state"] != "available":
            metal.provision(found, "deleted", "available")
    for one in metal.ask("GET", "allocations")["allocations"]:
        metal.ask("DELETE", f"allocations/{one['uuid']}")
    metal.change(found, extra={}, instance_info={})


def keeper(mode: str, port: int) -> Driver:
    """A driver of a host that keeps the node, or the pool that it is in; a second one is its heir."""
    made: Driver
    if mode == "scheduler":
        made = IronicDriver(client(port), Partition("a"), SETTINGS)
    else:
        made = ReservingDriver(client(port), Partition("a"), "host", SETTINGS)
    made.look()
    made.keep(made.eligible())
    return made


def spec(metal: Nodes, mode: str, node: str, name: str) -> ServerSpec:
    source = {"baremetal:image_source": metal.image("image"), "baremetal:image_type": "whole-disk"}
    flavor = {"vcpus": 1, "ram": 64, "disk": 1, "extra_specs": {"resources:CUSTOM_GOLD": "1"}}
    where = node if mode == "scheduler" else pool.uuid_of("host")
    image = {"id": "image-1", "properties": source}
    secret = base64.b64encode(f"the secret of {name}".encode()).decode()
    return ServerSpec(
        uuids.generate(),
        name,
        "p",
        "u",
        where,
        flavor,
        image,
        user_data=secret,
        config_drive=True,
        work="1-1",
    )


@contextmanager
def at_work(call: Callable[[], Any]) -> Iterator[list[BaseException]]:
    """Does it in another thread, and yields what it fails with."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            call()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield failures
    thread.join(60)
    assert not thread.is_alive()


@contextmanager
def held(proxy: FaultyProxy, method: str, path: str, body: bytes = b"") -> Iterator[threading.Event]:
    """The next such request reaches Ironic only when the event is set."""
    late = threading.Event()
    proxy.fail(Fault(works=True, until=late, times=1, method=method, path=path, body_has=body))
    try:
        yield late
    finally:
        late.set()
        proxy.fail(None)


def wait_for_strike(proxy: FaultyProxy) -> None:
    wait_until(lambda: proxy.struck == 1, "the request that is held", 60)


def wait_until_free(metal: Nodes, node: str) -> None:
    def free() -> bool:
        shown = metal.show(node)
        return shown["provision_state"] == "available" and shown["instance_uuid"] is None

    wait_until(free, "the node to be free", 60)


def secret_on(postgres: Postgres, node: str) -> str:
    """The user data on the config drive that Ironic gives a node: its API does not tell."""
    url = postgres.database_url("ironic").replace("+psycopg", "")
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT instance_info FROM nodes WHERE uuid = %s", (node,)).fetchone()
    assert row is not None
    drive = json.loads(row[0]).get("configdrive")
    if isinstance(drive, dict):
        return str(drive["user_data"])
    disk = pycdlib.PyCdlib()
    disk.open_fp(io.BytesIO(gzip.decompress(base64.b64decode(drive))))
    found = io.BytesIO()
    disk.get_file_from_iso_fp(found, joliet_path="/openstack/latest/user_data")
    return found.getvalue().decode()


@pytest.mark.parametrize("mode", MODES)
def test_a_spawn_that_was_overtaken_by_a_destroy_orders_nothing(
    metal: Nodes, proxy: FaultyProxy, node: str, mode: str
) -> None:
    driver, server = keeper(mode, proxy.port), spec(metal, mode, node, "overtaken")
    with held(proxy, "GET", "/validate") as late, at_work(lambda: driver.spawn(server)) as failures:
        wait_for_strike(proxy)
        driver.destroy(server.uuid, server.node_uuid)
        late.set()
    assert [type(error) for error in failures] == [DriverError]
    assert provisions(proxy) == 0
    wait_until_free(metal, node)
    assert metal.ask("GET", "allocations")["allocations"] == []


@pytest.mark.parametrize("mode", MODES)
def test_a_late_deployment_is_the_one_that_the_node_is_set_aside_for(
    metal: Nodes, proxy: FaultyProxy, node: str, postgres: Postgres, mode: str
) -> None:
    """It starts what the next tenant wants, a little early, and brings nothing along."""
    first, heir = keeper(mode, proxy.port), keeper(mode, proxy.port)
    left, server = spec(metal, mode, node, "left"), spec(metal, mode, node, "next")
    with (
        held(proxy, "PUT", "/states/provision") as late,
        at_work(lambda: first.spawn(left)),
    ):
        wait_for_strike(proxy)
        heir.destroy(left.uuid, left.node_uuid)
        with held(proxy, "GET", "/validate") as validated, at_work(lambda: heir.spawn(server)) as failures:
            wait_for_strike(proxy)
            late.set()
            wait_until(lambda: metal.show(node)["provision_state"] == "active", "the late order", 60)
            validated.set()
    assert failures == []
    assert (metal.show(node)["instance_uuid"], secret_on(postgres, node)) == (
        server.uuid,
        "the secret of next",
    )
    heir.destroy(server.uuid, server.node_uuid)
    wait_until_free(metal, node)


@pytest.mark.parametrize("mode", MODES)
def test_a_late_tear_down_does_not_reach_the_next_server(
    metal: Nodes, proxy: FaultyProxy, node: str, mode: str
) -> None:
    first, heir = keeper(mode, proxy.port), keeper(mode, port_of(metal))
    left, server = spec(metal, mode, node, "left"), spec(metal, mode, node, "next")
    assert first.spawn(left) == RUNNING
    heir.look()
    with (
        held(proxy, "PUT", "/states/provision", b"deleted") as late,
        at_work(lambda: first.destroy(left.uuid, left.node_uuid)),
    ):
        wait_for_strike(proxy)
        heir.destroy(left.uuid, left.node_uuid)
        wait_until_free(metal, node)
        heir.look()
        assert heir.spawn(server) == RUNNING
        late.set()
    shown = metal.show(node)
    assert (shown["provision_state"], shown["instance_uuid"]) == ("active", server.uuid)
    heir.destroy(server.uuid, server.node_uuid)
    wait_until_free(metal, node)


@pytest.mark.parametrize("mode", MODES)
def test_a_node_that_is_let_go_late_stays_with_the_next_server(
    metal: Nodes, proxy: FaultyProxy, node: str, mode: str
) -> None:
    first, heir = keeper(mode, proxy.port), keeper(mode, port_of(metal))
    left, server = spec(metal, mode, node, "left"), spec(metal, mode, node, "next")
    with held(proxy, "GET", "/validate") as validated, at_work(lambda: first.spawn(left)):
        wait_for_strike(proxy)
        with held(proxy, "PATCH", "/nodes/", b"remove") as late:
            validated.set()
            with at_work(lambda: first.destroy(left.uuid, left.node_uuid)):
                wait_for_strike(proxy)
                heir.look()
                heir.destroy(left.uuid, left.node_uuid)
                heir.look()
                assert heir.spawn(server) == RUNNING
                late.set()
    shown = metal.show(node)
    assert (shown["provision_state"], shown["instance_uuid"]) == ("active", server.uuid)
    heir.destroy(server.uuid, server.node_uuid)
    wait_until_free(metal, node)


def rebuilt(server: ServerSpec, name: str, work: str) -> ServerSpec:
    secret = base64.b64encode(f"the secret of {name}".encode()).decode()
    return msgspec.structs.replace(server, user_data=secret, work=work)


def test_a_late_rebuild_reaches_neither_the_next_server_nor_the_same_one(
    metal: Nodes, proxy: FaultyProxy, node: str, postgres: Postgres
) -> None:
    first, heir = keeper("scheduler", proxy.port), keeper("scheduler", port_of(metal))
    server = spec(metal, "scheduler", node, "first")
    assert first.spawn(server) == RUNNING
    wanted = rebuilt(server, "rebuilt", "2")
    with (
        held(proxy, "PUT", "/states/provision", b"rebuild") as late,
        at_work(lambda: first.rebuild(wanted)),
    ):
        wait_for_strike(proxy)
        assert heir.rebuild(wanted) == RUNNING
        done = metal.show(node)["provision_updated_at"]
        late.set()
    assert metal.show(node)["provision_updated_at"] == done, (
        "what was written to the disk since is still there"
    )
    assert secret_on(postgres, node) == "the secret of rebuilt"
    heir.destroy(server.uuid, node)
    wait_until_free(metal, node)
