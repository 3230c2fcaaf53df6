"""A cloud that samples are planted in, one after the other: what is asked of it, and its books."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from falcon import testing

from moorage.conductor.engine.runner import Runner
from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.db.tables.compute import nodes, operations, servers
from moorage.db.tables.placement import allocations, consumers
from moorage.placement.client.contract import PlacementClient
from tests.functional.conductor.older.interruption import Interruption
from tests.functional.conductor.older.sample import Sample
from tests.functional.conductor.older.transcript import transcribe
from tests.support.processes import wait_until


class Site:
    def __init__(
        self,
        api: testing.TestClient,
        database: Database,
        client: PlacementClient,
        network_id: str,
        addressed: Callable[[], set[str]],
        unbindable: set[str],
        driver_of: Callable[[str], Any],
    ) -> None:
        self.api = api
        self.database = database
        self.client = client
        self.network_id = network_id
        self.addressed = addressed
        """The servers that have anything of the network."""
        self.unbindable = unbindable
        """Hosts at which the network binds no port."""
        self.driver_of = driver_of
        """By host."""
        self.interruption = Interruption(database)
        self._runner: Runner | None = None
        self._asking: list[threading.Thread] = []

    def use(self, runner: Runner) -> None:
        """From now on it is this one that works, and dies."""
        self._runner = runner
        self.interruption.watch(runner)

    # ------------------------------------------------------------ as a user

    def get(self, path: str) -> Any:
        reply = self.api.simulate_get(path)
        assert reply.status_code == 200, reply.text
        return reply.json

    def server(self, uuid: str) -> Any:
        return self.get(f"/v2.1/servers/{uuid}")["server"]

    def host_of(self, uuid: str) -> str | None:
        """None if the server is nowhere, or gone."""
        reply = self.api.simulate_get(f"/v2.1/servers/{uuid}") if uuid else None
        if reply is None or reply.status_code != 200:
            return None
        host: str | None = reply.json["server"]["OS-EXT-SRV-ATTR:host"]
        return host

    def boot(self, **fields: Any) -> str:
        images = self.get("/image/v2/images")["images"]
        image = next(found["id"] for found in images if "cirros" in found["name"])
        body = {
            "name": "s",
            "flavorRef": "1",
            "imageRef": image,
            "networks": [{"uuid": self.network_id}],
            **fields,
        }
        reply = self.api.simulate_post("/v2.1/servers", json={"server": body})
        assert reply.status_code == 202, reply.text
        return str(reply.json["server"]["id"])

    def running(self, **fields: Any) -> str:
        uuid = self.boot(**fields)
        self.await_rest()
        server = self.server(uuid)
        assert server["status"] == "ACTIVE", server
        return uuid

    def act(self, uuid: str, body: dict[str, Any], version: str = "2.96") -> None:
        headers = {"openstack-api-version": f"compute {version}"}
        reply = self.api.simulate_post(f"/v2.1/servers/{uuid}/action", json=body, headers=headers)
        assert reply.status_code in (200, 202, 204), reply.text

    def moved(self, uuid: str, flavor: str | None) -> None:
        """It waits to be confirmed."""
        self.act(uuid, {"migrate": None} if flavor is None else {"resize": {"flavorRef": flavor}})
        self.await_rest()
        assert self.server(uuid)["status"] == "VERIFY_RESIZE"

    def set_metadata(self, uuid: str, metadata: dict[str, str]) -> None:
        """In place of what it has."""
        reply = self.api.simulate_put(f"/v2.1/servers/{uuid}/metadata", json={"metadata": metadata})
        assert reply.status_code == 200, reply.text

    def attach(self, uuid: str, **wanted: str) -> None:
        body = {"interfaceAttachment": wanted}
        self.api.simulate_post(f"/v2.1/servers/{uuid}/os-interface", json=body)

    def detach(self, uuid: str) -> None:
        path = f"/v2.1/servers/{uuid}/os-interface"
        (interface,) = self.get(path)["interfaceAttachments"]
        reply = self.api.simulate_delete(f"{path}/{interface['port_id']}")
        assert reply.status_code == 202, reply.text

    def delete(self, uuid: str) -> None:
        assert self.api.simulate_delete(f"/v2.1/servers/{uuid}").status_code == 204

    def meanwhile(self, ask: Callable[[], object]) -> None:
        """What is answered only once it is done."""
        self._asking.append(threading.Thread(target=ask, daemon=True))
        self._asking[-1].start()

    def set_down(self, host: str, down: bool) -> None:
        """An operator says so."""
        services = self.get("/v2.1/os-services?binary=nova-compute")["services"]
        service = next(found["id"] for found in services if found["host"] == host)
        reply = self.api.simulate_put(f"/v2.1/os-services/{service}", json={"forced_down": down})
        assert reply.status_code == 200, reply.text

    def clear(self) -> None:
        """As for the next one, whatever became of this one."""
        self.interruption.over()
        self.unbindable.clear()
        for service in self.get("/v2.1/os-services?binary=nova-compute")["services"]:
            if service["forced_down"]:
                self.set_down(service["host"], False)
        for server in self.get("/v2.1/servers")["servers"]:
            self.delete(server["id"])
        self.await_rest()
        assert self.get("/v2.1/servers")["servers"] == []
        assert (self.holders(), self.addressed()) == (set(), set())

    # ------------------------------------------------------------ the sample

    def plant(self, sample: Sample, operation: sa.Row[Any]) -> None:
        """In place of what this release has written at the same step."""
        data = transcribe(sample.data, operation.data, self.nodes())
        self.interruption.over()
        self.go_on(operation.id, step=sample.step, data=data)

    def go_on(self, operation_id: int, **values: Any) -> None:
        change = sa.update(operations).where(operations.c.id == operation_id)
        now = change.values(due_at=utcnow(), **values)
        self.database.transact(lambda connection: connection.execute(now))
        assert self._runner is not None
        self._runner.wake()

    def await_outcome(self, operation_id: int) -> str:
        query = sa.select(operations.c.outcome).where(operations.c.id == operation_id)
        found: list[str | None] = [None]

        def ended() -> bool:
            with self.database.read() as connection:
                found[0] = connection.execute(query).scalar_one()
            return found[0] is not None

        wait_until(ended, "the operation to end", 30)
        return str(found[0])

    # ------------------------------------------------------------ as an auditor

    def await_rest(self) -> None:
        wait_until(lambda: not self.unfinished(), "the ledger to be empty", 30)
        while self._asking:
            self._asking.pop().join(30)

    def unfinished(self) -> list[tuple[str, str]]:
        query = sa.select(operations.c.kind, operations.c.step).where(operations.c.finished_at.is_(None))
        with self.database.read() as connection:
            return [(row.kind, row.step) for row in connection.execute(query)]

    def nodes(self) -> dict[str, str]:
        """By host, which has one each."""
        with self.database.read() as connection:
            return dict(connection.execute(sa.select(nodes.c.host, nodes.c.uuid)).all())

    def id_of(self, uuid: str) -> int:
        with self.database.read() as connection:
            return int(connection.execute(sa.select(servers.c.id).where(servers.c.uuid == uuid)).scalar_one())

    def held(self, consumer_uuid: str) -> dict[str, dict[str, int]]:
        """What it has in Placement, by node."""
        return self.client.allocations(consumer_uuid)[0]

    def holders(self) -> set[str]:
        """The consumers that hold anything there."""
        query = sa.select(consumers.c.uuid).join(allocations, allocations.c.consumer_id == consumers.c.id)
        with self.database.read() as connection:
            return set(connection.execute(query).scalars())
