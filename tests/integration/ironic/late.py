"""Orders that are held on their way to Ironic until all has changed there, and who gives them."""

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

from moorage.core import uuids
from moorage.drivers.contract import ServerSpec
from moorage.drivers.ironic.driver import IronicDriver
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations import pool
from moorage.drivers.ironic.reservations.reserving import ReservingDriver
from moorage.drivers.ironic.settings import IronicSettings
from tests.integration.ironic.lines import client
from tests.lab.ironic.nodes import Nodes
from tests.support.faulty_proxy import Fault, FaultyProxy
from tests.support.postgres import Postgres
from tests.support.processes import wait_until

Driver = IronicDriver | ReservingDriver
MODES = ("scheduler", "reservation")
SETTINGS = IronicSettings(poll_interval=0.1, retries=100)


def empty(metal: Nodes, node: str) -> None:
    """Whatever a test has left: the node is free, and says nothing of us."""
    shown = metal.show(node)
    if shown["provision_state"] != "available" or shown["instance_uuid"] is not None:
        metal.change(node, protected=False)
        if shown["provision_state"] != "available":
            metal.provision(node, "deleted", "available")
    for one in metal.ask("GET", "allocations")["allocations"]:
        metal.ask("DELETE", f"allocations/{one['uuid']}")
    if metal.show(node)["instance_uuid"] is not None:
        metal.ask("PATCH", f"nodes/{node}", [{"op": "remove", "path": "/instance_uuid"}])
    metal.change(node, extra={}, instance_info={})


def keeper(mode: str, port: int, settings: IronicSettings = SETTINGS) -> Driver:
    """A driver of a host that keeps the node, or the pool that it is in; a second one is its heir."""
    made: Driver
    if mode == "scheduler":
        made = IronicDriver(client(port), Partition("a"), settings)
    else:
        made = ReservingDriver(client(port), Partition("a"), "host", settings)
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


def rebuilt(server: ServerSpec, name: str, work: str) -> ServerSpec:
    secret = base64.b64encode(f"the secret of {name}".encode()).decode()
    return msgspec.structs.replace(server, user_data=secret, work=work)
