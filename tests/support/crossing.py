"""A cloud in mid-upgrade: agents of several versions, a conductor with or without credentials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from falcon import testing

from moorage.agent.journal import Journal
from moorage.agent.ports import Ports, PortSettings
from moorage.agent.service import AgentService, AgentSettings
from moorage.bus.local import LocalBus
from moorage.bus.versions import NEWEST
from moorage.cli import settings
from moorage.cli.embedded import seeding
from moorage.compute_api import wsgi as compute_wsgi
from moorage.compute_api.service import ComputeService, ComputeSettings
from moorage.conductor.service import ConductorService, ConductorSettings
from moorage.db import engine, migrate
from moorage.db.tables.compute import operations, services
from moorage.db.tables.placement import allocations, consumers
from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from moorage.images.api import wsgi as images_wsgi
from moorage.images.connect import connect as connect_images
from moorage.images.service import ImageService
from moorage.network.absent import AbsentNetwork
from moorage.network.contract import Network
from moorage.placement.client.local import LocalPlacement
from moorage.placement.service import PlacementService
from tests.support.processes import wait_until
from tests.support.stage_neutron import NETWORK

PROJECT = "admin"
PATIENCE = 60.0
_BASICS: dict[str, object] = {
    "auth.strategy": "none",
    "agent.heartbeat_interval": 0.2,
    "agent.inventory_interval": 0.2,
    "conductor.ask_again_seconds": 3.0,
    "network.refresh_interval": 0,
}
NetworkOf = Callable[[str], Network]
"""By who uses it: `api`, `conductor`, or the name of a host."""


class Crossing:
    def __init__(self, url: str, directory: Path, network_of: NetworkOf, **options: object) -> None:
        connected = engine.connect(url)
        migrate.sync(connected)
        connected.dispose()
        self.conf = settings.read(None, {**_BASICS, "database.connection": url, **options})
        self._directory = directory
        self._network_of = network_of
        self._placement = PlacementService.from_conf(self.conf)
        self._placement.start()
        self.database = self._placement.database
        seeding.seed_new_cloud(self.database)
        self._client = LocalPlacement(self._placement)
        self._bus = LocalBus()
        self.agents: dict[str, AgentService] = {}
        self.drivers: dict[str, FakeDriver] = {}
        self.conductor: ConductorService | None = None
        images = ImageService.from_conf(self.conf, self.database)
        self._images = connect_images(self.conf, images.catalogue)
        compute = ComputeService(
            database=self.database,
            settings=ComputeSettings.from_conf(self.conf),
            images=self._images,
            network=network_of("api"),
            placement=self._client,
            wake=self._wake,
        )
        headers = {"x-auth-token": PROJECT, "openstack-api-version": "compute 2.96"}
        application = compute_wsgi.build(self.conf, compute, {"/image": images_wsgi.build(self.conf, images)})
        self.api = testing.TestClient(application, headers=headers)

    def stop(self) -> None:
        for agent in self.agents.values():
            agent.stop()
        if self.conductor is not None:
            self.conductor.stop()
        self._placement.stop()

    def _wake(self) -> None:
        if self.conductor is not None:
            self.conductor.runner.wake()

    # ------------------------------------------------------------ what an operator does

    def start_conductor(self, *, credentials: bool = True) -> None:
        """In place of the one that there was."""
        if self.conductor is not None:
            self.conductor.stop()
        network = self._network_of("conductor") if credentials else AbsentNetwork()
        self.conductor = ConductorService(
            self.database,
            ConductorSettings.from_conf(self.conf),
            self._bus.conductor_side(),
            network,
            self._client,
            self._images,
        )
        self.conductor.start()

    def start_agent(
        self,
        host: str,
        version: int = NEWEST,
        *,
        credentials: bool = True,
        faults: str = "",
        plug_seconds: float = PATIENCE,
        driver: type[FakeDriver] = FakeDriver,
    ) -> None:
        """In place of the one that the host had, with what that one has left."""
        self.stop_agent(host)
        directory = self._directory / host
        directory.mkdir(parents=True, exist_ok=True)
        fake = settings.read(None, {"fake.faults": {"spawn": faults}} if faults else {})
        network = self._network_of(host) if credentials else None
        self.drivers[host] = driver(host, FakeSettings.from_conf(fake), directory)
        agent = AgentService(
            replace(AgentSettings.from_conf(self.conf), host=host, driver="fake", version=version),
            self.drivers[host],
            self._bus.agent_side(),
            self._client,
            Journal(directory / "journal.sqlite"),
            ports=Ports(network, PortSettings(tries=3, first_pause=0.05, plug_seconds=plug_seconds)),
        )
        agent.start()
        self.agents[host] = agent
        wait_until(lambda: self._known(host) == (version, credentials), f"{host} to say so", PATIENCE)
        wait_until(lambda: self._providers() >= len(self.agents), "the inventories", PATIENCE)

    def stop_agent(self, host: str) -> None:
        if host in self.agents:
            self.agents.pop(host).stop()

    def bury(self, host: str) -> None:
        """The host is dead, and an operator says so."""
        self.stop_agent(host)
        found = self.get("/v2.1/os-services?binary=nova-compute")["services"]
        uuid = next(service["id"] for service in found if service["host"] == host)
        reply = self.api.simulate_put(f"/v2.1/os-services/{uuid}", json={"forced_down": True})
        assert reply.status_code == 200, reply.text

    def _known(self, host: str) -> tuple[int, bool] | None:
        query = sa.select(services.c.version, services.c.facts).where(services.c.host == host)
        with self.database.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else (row.version, row.facts.get("network"))

    def _providers(self) -> int:
        with self._placement.picture() as (fleet, _):
            return sum(bool(fleet.inventory(slot)) for slot in fleet.slots())

    # ------------------------------------------------------------ what a user does

    def get(self, path: str) -> Any:
        reply = self.api.simulate_get(path)
        assert reply.status_code == 200, reply.text
        return reply.json

    def boot(self, networks: Any = None, **fields: Any) -> str:
        images = self.get("/image/v2/images")["images"]
        image = next(found["id"] for found in images if "cirros" in found["name"])
        asked = [{"uuid": NETWORK}] if networks is None else networks
        server = {"name": "s", "flavorRef": "1", "imageRef": image, "networks": asked, **fields}
        reply = self.api.simulate_post("/v2.1/servers", json={"server": server})
        assert reply.status_code == 202, reply.text
        return str(reply.json["server"]["id"])

    def settled(self, uuid: str) -> Any:
        """The server, once nothing is left to do."""
        wait_until(self.at_rest, "the ledger to be empty", PATIENCE)
        return self.get(f"/v2.1/servers/{uuid}")["server"]

    def booted(self, networks: Any = None, **fields: Any) -> Any:
        server = self.settled(self.boot(networks, **fields))
        assert server["status"] == "ACTIVE", server.get("fault")
        return server

    def delete(self, *uuids: str) -> None:
        for uuid in uuids:
            assert self.api.simulate_delete(f"/v2.1/servers/{uuid}").status_code == 204
        wait_until(lambda: not self._there(uuids), "the servers to go", PATIENCE)

    def _there(self, uuids: Sequence[str]) -> list[str]:
        self._wake()
        return [uuid for uuid in uuids if self.api.simulate_get(f"/v2.1/servers/{uuid}").status_code != 404]

    # ------------------------------------------------------------ what an auditor sees

    def at_rest(self) -> bool:
        """Whether nothing is left to do; what is due is looked for at once, to save a test time."""
        self._wake()
        query = sa.select(sa.func.count()).where(operations.c.finished_at.is_(None))
        with self.database.read() as connection:
            return bool(connection.execute(query).scalar_one() == 0)

    def holders(self) -> set[str]:
        """The consumers that hold anything in Placement."""
        query = sa.select(consumers.c.uuid).join(allocations, allocations.c.consumer_id == consumers.c.id)
        with self.database.read() as connection:
            return set(connection.execute(query).scalars())
