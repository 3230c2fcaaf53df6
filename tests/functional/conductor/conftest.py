"""A whole cloud in this process: API, conductor, simulated hosts, on a fresh database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from falcon import testing

from moorage.cli import settings
from moorage.cli.embedded.cloud import Cloud
from moorage.conductor.engine.runner import UNDECLARED
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.tables.compute import addresses, operations
from moorage.db.tables.placement import allocations, consumers
from moorage.placement.client.contract import PlacementClient
from moorage.placement.client.local import LocalPlacement
from moorage.placement.service import PlacementService
from tests.functional.conductor.harbour import Harbour
from tests.support.processes import wait_until
from tests.support.recorder import Recorder

BASICS = {
    "auth.strategy": "none",
    "agent.heartbeat_interval": 0.2,
    "agent.inventory_interval": 0.2,
    "fake.vcpus": 2,
    "fake.cpu_allocation_ratio": 1.0,
}


class Yard:
    """What a test does to the cloud, as a user and as an auditor."""

    def __init__(
        self, url: str, directory: Path, hosts: int, client: PlacementClient | None = None, **options: Any
    ) -> None:
        engine_ = engine.connect(url)
        migrate.sync(engine_)
        engine_.dispose()
        places = {"database.connection": url, "images.directory": str(directory.parent / "images")}
        self.conf = settings.read(None, {**BASICS, **places, **options})
        self.placement = PlacementService.from_conf(self.conf)
        self.placement.start()
        self.asked = Recorder(client or LocalPlacement(self.placement))
        self.client = self.asked.client
        self.cloud = self.make_cloud(directory, hosts)
        headers = {"x-auth-token": "admin", "openstack-api-version": "compute 2.96"}
        self.api = testing.TestClient(self.cloud.application(), headers=headers)
        self.cloud.start()
        nodes = hosts * int(str(options.get("fake.nodes", 1)))
        wait_until(lambda: len(self.get("/v2.1/os-hypervisors")["hypervisors"]) == nodes, "the hosts", 30)
        wait_until(lambda: self.providers() >= nodes, "the inventories", 30)

    def make_cloud(self, directory: Path, hosts: int) -> Cloud:
        return Cloud(self.conf, self.placement.database, self.client, directory, hosts)

    def stop(self) -> None:
        """Whatever a test was about: nobody may have asked for the whole cloud."""
        self.cloud.stop()
        self.placement.stop()
        assert self.asked.unbounded() == []

    def get(self, path: str) -> Any:
        reply = self.api.simulate_get(path)
        assert reply.status_code == 200, reply.text
        return reply.json

    def image(self) -> str:
        images = self.api.simulate_get("/image/v2/images").json["images"]
        return str(next(found["id"] for found in images if "cirros" in found["name"]))

    def boot(self, count: int = 1, hints: dict[str, str] | None = None, **fields: Any) -> list[str]:
        server = {"name": "s", "flavorRef": "1", "imageRef": self.image(), "networks": "auto", **fields}
        known = {found["id"] for found in self.get("/v2.1/servers")["servers"]}
        body = {"server": {**server, "min_count": count}, "os:scheduler_hints": hints or {}}
        reply = self.api.simulate_post("/v2.1/servers", json=body)
        assert reply.status_code == 202, reply.text
        return [found["id"] for found in self.get("/v2.1/servers")["servers"] if found["id"] not in known]

    def server(self, uuid: str) -> Any:
        return self.get(f"/v2.1/servers/{uuid}")["server"]

    def delete(self, uuid: str) -> None:
        assert self.api.simulate_delete(f"/v2.1/servers/{uuid}").status_code == 204

    def await_status(self, uuids: list[str], *wanted: str) -> list[Any]:
        def there() -> bool:
            return all(self.server(uuid)["status"] in wanted for uuid in uuids)

        wait_until(there, f"{wanted}", 30)
        return [self.server(uuid) for uuid in uuids]

    def await_gone(self, uuids: list[str]) -> None:
        def gone() -> bool:
            return all(self.api.simulate_get(f"/v2.1/servers/{uuid}").status_code == 404 for uuid in uuids)

        wait_until(gone, "the servers to go", 30)

    def await_rest(self) -> None:
        """Until no operation is left to do."""
        wait_until(self.is_at_rest, "the ledger to be empty", 30)

    def is_at_rest(self) -> bool:
        query = sa.select(sa.func.count()).where(operations.c.finished_at.is_(None))
        with self.placement.database.read() as connection:
            return bool(connection.execute(query).scalar_one() == 0)

    def holders(self) -> set[str]:
        """The consumers that hold anything in Placement."""
        query = sa.select(consumers.c.uuid).join(allocations, allocations.c.consumer_id == consumers.c.id)
        with self.placement.database.read() as connection:
            return set(connection.execute(query).scalars())

    def addressed(self) -> set[str]:
        """The servers that have an address."""
        with self.placement.database.read() as connection:
            return set(connection.execute(sa.select(addresses.c.server_uuid)).scalars())

    def providers(self) -> int:
        """How many nodes have their inventory in Placement."""
        with self.placement.picture() as (fleet, _):
            return sum(bool(fleet.inventory(slot)) for slot in fleet.slots())


def _undeclared() -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for metric in UNDECLARED.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }


@pytest.fixture(autouse=True)
def declared_steps() -> Iterator[None]:
    """Every kind of operation goes only where it declares that it goes: the graphs in the pages are true."""
    before = _undeclared()
    yield
    astray = {step for step, count in _undeclared().items() if count != before.get(step, 0.0)}
    assert {step for step in astray if step[0] != "count"} == set()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    connected = engine.connect(database_url)
    migrate.sync(connected)
    yield Database(connected)
    connected.dispose()


@pytest.fixture
def yard(database_url: str, tmp_path: Path) -> Iterator[Callable[..., Yard]]:
    made: list[Yard] = []

    def make(hosts: int = 2, **options: Any) -> Yard:
        made.append(Yard(database_url, tmp_path / "agents", hosts, **options))
        return made[-1]

    yield make
    for one in made:
        one.stop()


Make = Callable[..., Harbour]


@pytest.fixture
def harbour(yard: Callable[..., Yard], tmp_path: Path) -> Make:
    """A cloud with room for moves."""

    def make(hosts: int = 2, **options: Any) -> Harbour:
        return Harbour(yard(hosts=hosts, **{"fake.vcpus": 8, **options}), tmp_path)

    return make
