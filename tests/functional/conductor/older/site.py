"""A cloud that samples are planted in, one after the other: what is asked of it, and its books."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
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

_SOON = timedelta(minutes=30)


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
        images = self.get("/image/v2/images")["images"]
        self._image = next(found["id"] for found in images if "cirros" in found["name"])
        self._down: set[str] = set()
        self._last: tuple[str, dict[str, Any]] | None = None
        """The last server that ran, and what was asked for."""
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

    def boot(self, **fields: Any) -> str:
        self._clear_server()
        body = {
            "name": "s",
            "flavorRef": "1",
            "imageRef": self._image,
            "networks": [{"uuid": self.network_id}],
            **fields,
        }
        reply = self.api.simulate_post("/v2.1/servers", json={"server": body})
        assert reply.status_code == 202, reply.text
        return str(reply.json["server"]["id"])

    def running(self, **fields: Any) -> str:
        """It may have been through an operation or two, as long as that has left no trace."""
        if self._last is not None and self._last[1] == fields:
            return self._last[0]
        uuid = self.boot(**fields)
        self.await_rest()
        assert self.row(uuid).vm_state == "active"
        self._last = uuid, fields
        return uuid

    def act(self, uuid: str, body: dict[str, Any], version: str = "2.96") -> None:
        headers = {"openstack-api-version": f"compute {version}"}
        reply = self.api.simulate_post(f"/v2.1/servers/{uuid}/action", json=body, headers=headers)
        assert reply.status_code in (200, 202, 204), reply.text

    def moved(self, uuid: str, flavor: str | None) -> None:
        """It waits to be confirmed."""
        self.act(uuid, {"migrate": None} if flavor is None else {"resize": {"flavorRef": flavor}})
        self.await_rest()
        assert self.row(uuid).vm_state == "resized"

    def set_metadata(self, uuid: str, metadata: dict[str, str]) -> None:
        """In place of what it has, whatever state it is in."""
        change = sa.update(servers).where(servers.c.uuid == uuid).values({servers.c.metadata: metadata})
        self.database.transact(lambda connection: connection.execute(change))

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
        (self._down.add if down else self._down.remove)(host)

    def clear(self) -> None:
        """As for the next one, whatever became of this one."""
        self.interruption.over()
        self.unbindable.clear()
        for host in set(self._down):
            self.set_down(host, False)
        if not self._is_as_new():
            self._clear_server()

    def _is_as_new(self) -> bool:
        """Then the next one may have the server."""
        if self._last is None or self._there() != [self._last[0]] or self.unfinished():
            return False
        uuid, fields = self._last
        row = self.row(uuid)
        found = (row.vm_state, row.task_state, row.flavorid, row.metadata, self.holders(), self.addressed())
        addressed = set() if fields.get("networks") == "none" else {uuid}
        return found == ("active", None, fields.get("flavorRef", "1"), {}, {uuid}, addressed)

    def _clear_server(self) -> None:
        """Nothing is left of it."""
        self._last = None
        for uuid in self._there():
            self.delete(uuid)
        self.await_rest()
        assert self._there() == []
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

    def error(self, operation_id: int) -> str:
        query = sa.select(operations.c.error).where(operations.c.id == operation_id)
        with self.database.read() as connection:
            return str(connection.execute(query).scalar_one())

    # ------------------------------------------------------------ as an auditor

    def await_rest(self) -> None:
        wait_until(lambda: not self.unfinished(), "the ledger to be empty", 30)
        while self._asking:
            self._asking.pop().join(30)

    def unfinished(self) -> list[tuple[str, str]]:
        """But for what comes to a server that is deleted softly, in its own time."""
        later = sa.and_(operations.c.kind == "delete", operations.c.due_at > utcnow() + _SOON)
        query = sa.select(operations.c.kind, operations.c.step).where(
            operations.c.finished_at.is_(None), ~later
        )
        with self.database.read() as connection:
            return [(row.kind, row.step) for row in connection.execute(query)]

    def nodes(self) -> dict[str, str]:
        """By host, which has one each."""
        with self.database.read() as connection:
            return dict(connection.execute(sa.select(nodes.c.host, nodes.c.uuid)).all())

    def row(self, uuid: str) -> sa.Row[Any]:
        """The server's."""
        with self.database.read() as connection:
            return connection.execute(sa.select(servers).where(servers.c.uuid == uuid)).one()

    def _there(self) -> list[str]:
        query = sa.select(servers.c.uuid).where(servers.c.deleted_at.is_(None))
        with self.database.read() as connection:
            return list(connection.execute(query).scalars())

    def held(self, consumer_uuid: str) -> dict[str, dict[str, int]]:
        """What it has in Placement, by node."""
        return self.client.allocations(consumer_uuid)[0]

    def holders(self) -> set[str]:
        """The consumers that hold anything there."""
        query = sa.select(consumers.c.uuid).join(allocations, allocations.c.consumer_id == consumers.c.id)
        with self.database.read() as connection:
            return set(connection.execute(query).scalars())
