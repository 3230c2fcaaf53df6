"""A Compute API on an empty database, and callers of several kinds who use it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import falcon.testing
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute import options
from moorage.compute.aggregates import aggregates
from moorage.compute.quotas import quotas
from moorage.compute.servers import servers
from moorage.compute.servers.server import Server
from moorage.compute.servers.states import PowerNumber, VmState
from moorage.compute_api import wsgi
from moorage.compute_api.service import ComputeService, ComputeSettings
from moorage.core import config
from moorage.core.clock import utcnow
from moorage.db import engine, migrate
from moorage.db import options as db_options
from moorage.db.database import Database
from moorage.db.tables import compute as tables
from moorage.http import options as http_options
from moorage.images.contract import Image, ImageNotFoundError, NewImage
from moorage.network import options as network_options
from moorage.network.pool import PoolNetwork, PoolSettings, network_of
from moorage.placement.client.contract import PlacementClient

IMAGE = "aaaaaaaa-0000-4000-8000-000000000001"
PICKY_IMAGE = "aaaaaaaa-0000-4000-8000-000000000002"
QUEUED_IMAGE = "aaaaaaaa-0000-4000-8000-000000000003"
ABSENT = "aaaaaaaa-0000-4000-8000-00000000dead"
NETWORK = network_of("private")
NEWEST = "2.104"


class Shelf:
    """Images that lie ready."""

    def __init__(self) -> None:
        self.refusal: Exception | None = None
        """What is raised instead of making a record."""
        self._images = {
            IMAGE: Image(IMAGE, "cirros", properties={"hw_disk_bus": "virtio"}),
            PICKY_IMAGE: Image(PICKY_IMAGE, "large", min_ram=4096, min_disk=50),
            QUEUED_IMAGE: Image(QUEUED_IMAGE, "not yet", status="queued"),
        }

    def find(self, image_id: str, token: str | None = None, project_id: str | None = None) -> Image:
        if image_id not in self._images:
            raise ImageNotFoundError(image_id)
        return self._images[image_id]

    def create(self, new: NewImage, token: str | None = None) -> str:
        if self.refusal is not None:
            raise self.refusal
        image_id = new.id or str(uuid.uuid4())
        self._images.setdefault(image_id, Image(image_id, new.name, "queued", properties=new.properties))
        return image_id

    def delete(self, image_id: str, token: str | None = None) -> None:
        self._images.pop(image_id, None)

    def select(
        self, properties: Mapping[str, str], token: str | None = None, project_id: str | None = None
    ) -> list[Image]:
        wanted = properties.items()
        return [image for image in reversed(self._images.values()) if wanted <= image.properties.items()]


class User:
    """Somebody with a token, who speaks one version of the API unless a call says otherwise."""

    def __init__(self, client: falcon.testing.TestClient, user: str, project: str, roles: str) -> None:
        self._client = client
        self._headers = {"X-Auth-Token": f"{user}:{project}", "X-Roles": roles}
        self.user, self.project = user, project

    def with_roles(self, roles: str) -> User:
        return User(self._client, self.user, self.project, roles)

    def call(
        self, method: str, path: str, body: Any = None, *, version: str = NEWEST
    ) -> falcon.testing.Result:
        headers = {**self._headers, "OpenStack-API-Version": f"compute {version}"}
        return self._client.simulate_request(method, f"/v2.1{path}", headers=headers, json=body)

    def get(self, path: str, version: str = NEWEST) -> Any:
        answer = self.call("GET", path, version=version)
        assert answer.status_code == 200, answer.text
        return answer.json

    def boot(self, version: str = NEWEST, *, hints: dict[str, Any] | None = None, **server: Any) -> Any:
        """The answer to a POST of a small server with these differences."""
        asked = {"name": "one", "imageRef": IMAGE, "flavorRef": "small", **server}
        if version == NEWEST:
            asked.setdefault("networks", "auto")
        body: dict[str, Any] = {"server": asked}
        if hints is not None:
            body["os:scheduler_hints"] = hints
        return self.call("POST", "/servers", body, version=version)

    def booted(self, **server: Any) -> str:
        answer = self.boot(**server)
        assert answer.status_code == 202, answer.text
        return str(answer.json["server"]["id"])

    def refused(self, status: int, method: str, path: str, body: Any = None, version: str = NEWEST) -> str:
        """The sentence of a refusal, which must have this status."""
        return sentence(self.call(method, path, body, version=version), status)


def sentence(answer: falcon.testing.Result, status: int) -> str:
    assert answer.status_code == status, answer.text
    [fault] = answer.json.values()
    assert fault["code"] == status
    return str(fault["message"])


class Cloud:
    def __init__(
        self, database: Database, client: falcon.testing.TestClient, woken: list[int], images: Shelf
    ) -> None:
        self.database = database
        self.images = images
        self.woken = woken
        self.alice = User(client, "alice", "red", "member,reader")
        self.rita = User(client, "rita", "red", "reader")
        self.anna = User(client, "anna", "red", "member,reader")
        """She works in alice's project."""
        self.bob = User(client, "bob", "blue", "member,reader")
        self.admin = User(client, "root", "cloud", "admin,member,reader")
        self.neutron = User(client, "neutron", "service", "service")

    def write(self, statement: sa.Executable) -> None:
        with self.database.write() as connection:
            connection.execute(statement)

    def limit(self, project_id: str, user_id: str = "", **limits: int) -> None:
        self.database.transact(lambda connection: quotas.set_limits(connection, project_id, user_id, limits))

    def server(self, uuid: str) -> Server:
        with self.database.read() as connection:
            return servers.find(connection, uuid, deleted=True)

    def run(self, uuid: str, host: str = "host1", **columns: Any) -> None:
        """What the conductor does at the end of a build."""
        server = self.server(uuid)
        values = {
            "vm_state": VmState.ACTIVE,
            "task_state": None,
            "host": host,
            "node": f"{host}-node",
            "power_state": PowerNumber.RUNNING,
            "launched_at": utcnow(),
            **columns,
        }
        self.database.transact(lambda connection: servers.set_state(connection, server.id, **values))

    def end(self, uuid: str) -> None:
        """What the conductor does at the end of a delete."""
        server = self.server(uuid)
        self.database.transact(lambda connection: servers.mark_deleted(connection, [server.id]))

    def operations(self, uuid: str) -> list[tuple[str, str | None]]:
        """Kind and outcome of all that was ever to be done with a server."""
        table = tables.operations
        query = sa.select(table.c.kind, table.c.outcome).where(table.c.server_id == self.server(uuid).id)
        with self.database.read() as connection:
            return list(connection.execute(query.order_by(table.c.id)))

    def usage(self, project: str) -> tuple[int, int, int]:
        table = tables.quota_usage
        query = sa.select(table.c.instances, table.c.cores, table.c.ram).where(table.c.project_id == project)
        with self.database.read() as connection:
            row = connection.execute(query).one_or_none()
        return (0, 0, 0) if row is None else (row.instances, row.cores, row.ram)

    def count(self) -> int:
        with self.database.read() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(tables.servers)).scalar_one()


def furnish(connection: Connection) -> None:
    """Some flavors, and two hosts that are up, one of them in a zone of its own."""
    small = {"flavorid": "small", "name": "m1.small", "vcpus": 1, "ram": 512, "disk": 5}
    flavors = [
        {**small, "extra_specs": {"hw:cpu_policy": "shared"}},
        {**small, "flavorid": "big", "name": "m1.big", "vcpus": 8, "ram": 8192, "extra_specs": {}},
        {**small, "flavorid": "diskless", "name": "m1.diskless", "disk": 0, "extra_specs": {}},
    ]
    connection.execute(sa.insert(tables.flavors), flavors)
    private = {**small, "flavorid": "secret", "name": "m1.secret", "is_public": False, "extra_specs": {}}
    connection.execute(sa.insert(tables.flavors).values(private))
    for number in (1, 2):
        host = f"host{number}"
        service = {"uuid": f"bbbbbbbb-0000-4000-8000-00000000000{number}", "host": host}
        connection.execute(
            sa.insert(tables.services).values(
                **service, binary="nova-compute", version=1, facts={}, seen_at=utcnow()
            )
        )
        node = {"uuid": f"cccccccc-0000-4000-8000-00000000000{number}", "name": f"{host}-node", "host": host}
        connection.execute(sa.insert(tables.nodes).values(**node, hypervisor_type="fake", facts={}))
    west = aggregates.create(connection, "west", "west")
    aggregates.add_host(connection, west.id, "host2")


@pytest.fixture
def configuration() -> list[str]:
    """Files that the API reads; a module that needs some has a fixture of this name."""
    return []


@pytest.fixture
def cloud(database_url: str, configuration: list[str]) -> Iterator[Cloud]:
    with cloud_on(database_url, configuration) as running:
        yield running


@contextmanager
def cloud_on(database_url: str, configuration: Sequence[str] = (), *, first: bool = True) -> Iterator[Cloud]:
    """The first process of its API, or one more."""
    connected = engine.connect(database_url)
    migrate.sync(connected)
    database = Database(connected)
    areas = (db_options.OPTIONS, http_options.OPTIONS, options.OPTIONS, network_options.OPTIONS)
    conf = config.read(configuration, areas, {"auth.strategy": "none"})
    woken: list[int] = []
    images = Shelf()
    service = ComputeService(
        database,
        ComputeSettings.from_conf(conf),
        images,
        network=PoolNetwork(database, PoolSettings.from_conf(conf)),
        placement=cast(PlacementClient, None),
        wake=lambda: woken.append(1),
    )
    if first:
        database.transact(furnish)
    client = falcon.testing.TestClient(cast(Any, wsgi.build(conf, service)))
    yield Cloud(database, client, woken, images)
    connected.dispose()
