"""A cloud in which servers move: what a test asks of it, and how it checks the books of both ends."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.tables.compute import UNMIRRORED, nodes, services
from moorage.db.tables.images import images
from moorage.drivers.fake.servers import FakeServer
from moorage.placement.client.contract import ConsumerClaim, ReportedProvider
from tests.support.processes import wait_until

if TYPE_CHECKING:
    from tests.functional.conductor.conftest import Yard

HUGE = {"VCPU": {"total": 5000}, "MEMORY_MB": {"total": 2**24}, "DISK_GB": {"total": 10**6}}


class Harbour:
    def __init__(self, cloud: Yard, directory: Path) -> None:
        self.cloud = cloud
        self._agents = directory / "agents" / "agents"
        self.strangers: set[str] = set()
        """Consumers that are there for other reasons."""

    # ------------------------------------------------------------ as a user

    def running(self, **fields: Any) -> str:
        """A server that is active."""
        (uuid,) = self.cloud.boot(**fields)
        (server,) = self.cloud.await_status([uuid], "ACTIVE", "ERROR")
        assert server["status"] == "ACTIVE", server
        self.cloud.await_rest()
        return uuid

    def running_many(self, count: int, **fields: Any) -> None:
        self.cloud.await_status(self.cloud.boot(count=count, **fields), "ACTIVE")

    def make_flavor(self, name: str, resource_class: str, more: dict[str, str] | None = None) -> None:
        """A flavor of one of this class, and nothing else; `more` are extra specs."""
        flavor = {"name": name, "id": name, "ram": 64, "vcpus": 1, "disk": 1}
        assert self.cloud.api.simulate_post("/v2.1/flavors", json={"flavor": flavor}).status_code == 200
        specs = {f"resources:{other}": "0" for other in ("VCPU", "MEMORY_MB", "DISK_GB")}
        body = {"extra_specs": {**specs, f"resources:{resource_class}": "1", **(more or {})}}
        reply = self.cloud.api.simulate_post(f"/v2.1/flavors/{name}/os-extra_specs", json=body)
        assert reply.status_code == 200, reply.text

    def act(self, uuid: str, body: dict[str, Any], *, version: str = "2.96", status: int = 202) -> Any:
        reply = self.cloud.api.simulate_post(
            f"/v2.1/servers/{uuid}/action",
            json=body,
            headers={"openstack-api-version": f"compute {version}"},
        )
        assert reply.status_code == status, reply.text
        return reply.json if reply.content else None

    def refused(self, uuid: str, body: dict[str, Any], status: int, *, version: str = "2.96") -> str:
        (fault,) = self.act(uuid, body, version=version, status=status).values()
        return str(fault["message"])

    def settled(self, uuid: str, *statuses: str) -> Any:
        """The server once nothing is being done to it any more, which must be in one of these."""
        self.cloud.await_rest()
        server = self.cloud.server(uuid)
        assert server["status"] in statuses, server
        assert server["OS-EXT-STS:task_state"] is None
        return server

    def host_of(self, uuid: str) -> str:
        return str(self.cloud.server(uuid)["OS-EXT-SRV-ATTR:host"])

    def set_service(self, host: str, **fields: Any) -> None:
        (service,) = [
            found
            for found in self.cloud.get("/v2.1/os-services?binary=nova-compute")["services"]
            if found["host"] == host
        ]
        reply = self.cloud.api.simulate_put(f"/v2.1/os-services/{service['id']}", json=fields)
        assert reply.status_code == 200, reply.text

    def set_metadata(self, uuid: str, metadata: dict[str, str]) -> None:
        reply = self.cloud.api.simulate_post(f"/v2.1/servers/{uuid}/metadata", json={"metadata": metadata})
        assert reply.status_code == 200, reply.text

    def add_image(self, properties: dict[str, str]) -> str:
        """An image with these properties, as somebody put it into the catalogue."""
        uuid = uuids.generate()
        row = {"uuid": uuid, "name": "picky", "properties": properties}
        with self.cloud.placement.database.write() as connection:
            connection.execute(sa.insert(images).values(row))
        return uuid

    def make_aggregate(self, name: str, host: str, metadata: dict[str, str]) -> None:
        """An aggregate of one host; Placement knows it when this returns."""
        made = self.cloud.api.simulate_post("/v2.1/os-aggregates", json={"aggregate": {"name": name}})
        path = f"/v2.1/os-aggregates/{made.json['aggregate']['id']}/action"
        for action in ({"set_metadata": {"metadata": metadata}}, {"add_host": {"host": host}}):
            reply = self.cloud.api.simulate_post(path, json=action)
            assert reply.status_code == 200, reply.text

    def stop_agent(self, host: str) -> None:
        """The host is dead."""
        self.cloud.cloud.agents.pop(host).stop()

    def start_agent(self, host: str) -> None:
        """The host comes back, and nobody says any more that it is dead."""
        self.set_service(host, forced_down=False)
        agent = self.cloud.cloud.agents[host] = self.cloud.cloud.agent(host)
        agent.start()

    def die(self, host: str) -> None:
        """An operator says that the host is dead, which it need not be."""
        self.set_service(host, forced_down=True)

    def await_task_state(self, uuid: str, state: str) -> None:
        wait_until(lambda: self.cloud.server(uuid)["OS-EXT-STS:task_state"] == state, state, 20)

    def await_destination(self, uuid: str) -> str:
        """The host that the move goes to, once it is known and told."""
        self.await_task_state(uuid, "resize_finish")
        return str(self.migrations(uuid)[0]["dest_compute"])

    def addresses(self, uuid: str) -> Any:
        return self.cloud.server(uuid)["addresses"]

    def used(self) -> Any:
        """What the project uses of its quotas."""
        return self.cloud.get("/v2.1/limits")["limits"]["absolute"]

    def traces(self, uuid: str) -> list[Any]:
        return list(self.cloud.get(f"/v2.1/servers/{uuid}/moorage-trace")["traces"])

    def migrations(self, uuid: str) -> list[Any]:
        """The newest first."""
        return list(self.cloud.get(f"/v2.1/os-migrations?instance_uuid={uuid}")["migrations"])

    def last_error(self, uuid: str) -> str:
        """Why the last thing that was asked of the server failed."""
        actions = self.cloud.get(f"/v2.1/servers/{uuid}/os-instance-actions")["instanceActions"]
        path = f"/v2.1/servers/{uuid}/os-instance-actions/{actions[0]['request_id']}"
        action = self.cloud.get(path)["instanceAction"]
        assert action["message"] == "Error", action
        details = [event["details"] for event in action["events"] if event["result"] == "Error"]
        return str(details[-1])

    # ------------------------------------------------------------ as an operator

    def crowd(self, count: int) -> None:
        """Hosts that Placement offers first, so many of each kind: huge, but full or disabled."""
        full, said, lagging = (
            [ReportedProvider(uuids.generate(), f"{kind}-{n}", HUGE, traits) for n in range(count)]
            for kind, traits in (("full", []), ("said", ["COMPUTE_STATUS_DISABLED"]), ("lagging", []))
        )
        client = self.cloud.client
        client.report([*full, *said, *lagging])
        claims = [ConsumerClaim(uuids.generate(), {one.uuid: {"VCPU": 5000}}, "p", "u") for one in full]
        assert client.claim(claims) == [None] * count
        self.strangers = {claim.consumer_uuid for claim in claims}
        with self.cloud.placement.database.write() as connection:
            for one in [*full, *said, *lagging]:
                connection.execute(sa.insert(services).values(_service(one)))
                node = {"uuid": one.uuid, "name": one.name, "host": one.name, "facts": {}}
                connection.execute(sa.insert(nodes).values(**node, hypervisor_type="fake"))
        self.cloud.asked.queries.clear()

    def await_mirrored(self) -> None:
        """Until Placement knows of all nodes that don't bear their host's name whose they are."""
        untold = sa.select(sa.func.count()).where(nodes.c.name != nodes.c.host, UNMIRRORED)

        def told() -> bool:
            with self.cloud.placement.database.read() as connection:
                return connection.execute(untold).scalar_one() == 0

        wait_until(told, "the own aggregates of hosts", 30)

    def trees_asked_for(self) -> list[str]:
        """Since the last look; every question must have been bounded."""
        asked = [dict(query) for query in self.cloud.asked.queries]
        assert asked, "nobody was asked"
        assert all("limit" in query for query in asked)
        self.cloud.asked.queries.clear()
        return [query["in_tree"] for query in asked if "in_tree" in query]

    def node_of(self, host: str) -> str:
        listed = self.cloud.get("/v2.1/os-hypervisors")["hypervisors"]
        return str(next(one["id"] for one in listed if one["hypervisor_hostname"] == host))

    # ------------------------------------------------------------ as an auditor

    def copies(self, uuid: str) -> dict[str, FakeServer]:
        """What the hosts have of a server, by host."""
        found = {}
        for path in sorted(self._agents.glob("*/fake-servers.sqlite")):
            with sqlite3.connect(path) as file:
                rows = file.execute("SELECT server FROM servers WHERE uuid = ?", (uuid,)).fetchall()
            for (row,) in rows:
                found[path.parent.name] = msgspec.msgpack.decode(row, type=FakeServer)
        return found

    def held(self, consumer_uuid: str) -> dict[str, dict[str, int]]:
        """What a consumer holds in Placement, by the name of the provider."""
        names = {
            hypervisor["id"]: hypervisor["hypervisor_hostname"]
            for hypervisor in self.cloud.get("/v2.1/os-hypervisors")["hypervisors"]
        }
        found, _ = self.cloud.client.allocations(consumer_uuid)
        return {names[uuid]: amounts for uuid, amounts in found.items()}

    def only_on(self, uuid: str, host: str) -> FakeServer:
        """The server is on this host and on no other, and holds that host and nothing else."""
        wait_until(lambda: set(self.copies(uuid)) == {host}, f"only {host} to have the server", 20)
        assert self.host_of(uuid) == host
        assert set(self.held(uuid)) == {host}
        assert self.cloud.holders() - self.strangers == {uuid}
        assert self.cloud.addressed() == {uuid}
        return self.copies(uuid)[host]

    def on_both(self, uuid: str, source: str, target: str) -> None:
        """In mid-move: the migration holds the source, the server holds its destination."""
        migration = self.migrations(uuid)[0]
        assert set(self.held(uuid)) == {target}
        assert set(self.held(migration["uuid"])) == {source}

    def nothing_left(self, uuid: str) -> None:
        """The server is deleted, and neither host nor Placement nor the network remembers it."""
        self.cloud.await_gone([uuid])
        wait_until(lambda: not self.copies(uuid), "no host to have the server", 20)
        assert self.cloud.holders() == self.cloud.addressed() == set()


def _service(provider: ReportedProvider) -> dict[str, Any]:
    """Whoever has the node: the trait that says so may lag behind the operator."""
    return {
        "uuid": uuids.generate(),
        "host": provider.name,
        "binary": "nova-compute",
        "version": 2,
        "facts": {},
        "seen_at": utcnow(),
        "disabled": not provider.name.startswith("full"),
    }
