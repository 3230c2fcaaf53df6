"""Who asks a cloud for something, as a user or an operator, and looks into its books."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from typing import Any

import requests
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from moorage.core.clock import utcnow
from moorage.db import engine
from moorage.db.tables.aggregates import chores
from moorage.db.tables.audits import audits
from moorage.db.tables.compute import nodes, operations, servers
from tests.chaos.steps.clouds import ForkedPart, Killable
from tests.support.processes import wait_until
from tests.support.stage_neutron import NETWORK

_HEADERS = {"x-auth-token": "admin", "openstack-api-version": "compute 2.96"}
_LATER = 600.0
"""Seconds; what is due after that is not waited for: servers that were deleted softly go in their time."""
IMAGE = "cirros-0.6.3-x86_64-disk"


class User:
    def __init__(self, cloud: Killable) -> None:
        self.cloud = cloud
        self.engine: Engine = engine.connect(cloud.database_url)
        self._session = requests.Session()
        self._session.headers.update(_HEADERS)
        self._numbers = itertools.count(1)
        self._reviving = threading.Lock()
        self.deaths = 0
        """So far, of all parts."""
        images = self.get("/image/v2/images")["images"]
        self._image = next(found["id"] for found in images if found["name"] == IMAGE)
        self.down: set[str] = set()
        """Hosts of which an operator says so."""
        self._disabled: set[str] = set()

    def close(self) -> None:
        self._session.close()
        self.engine.dispose()

    # ------------------------------------------------------------ asking

    def call(self, method: str, path: str, body: Any = None, version: str = "2.96") -> requests.Response:
        headers = {"openstack-api-version": f"compute {version}"}
        return self._session.request(method, self.cloud.url + path, json=body, headers=headers, timeout=60)

    def get(self, path: str) -> Any:
        """Again, while whoever is asked is dying."""
        deadline = time.monotonic() + 10
        while True:
            try:
                answer = self.call("GET", path)
                break
            except requests.ConnectionError:
                if time.monotonic() > deadline:
                    raise
                self.revive()
        assert answer.status_code == 200, answer.text
        return answer.json()

    def placement(self, method: str, path: str, body: Any = None) -> Any:
        """What Placement answers."""
        headers = {"openstack-api-version": "placement 1.39"}
        url = self.cloud.placement_url + path
        answer = self._session.request(method, url, json=body, headers=headers, timeout=60)
        self.accept(answer)
        return answer.json() if answer.content else None

    def server(self, uuid: str) -> Any:
        return self.get(f"/v2.1/servers/{uuid}")["server"]

    def boot(self, **fields: Any) -> None:
        body = {
            "name": f"s{next(self._numbers)}",
            "flavorRef": "1",
            "imageRef": self._image,
            "networks": [{"uuid": NETWORK}],
            **fields,
        }
        self.accept(self.call("POST", "/v2.1/servers", {"server": body}))

    def running(self, **fields: Any) -> str:
        self.boot(**fields)
        self.await_rest()
        (uuid,) = self.there()
        assert self.row(uuid).vm_state == "active", self.row(uuid).fault
        return uuid

    def act(self, uuid: str, body: dict[str, Any], version: str = "2.96") -> None:
        self.accept(self.call("POST", f"/v2.1/servers/{uuid}/action", body, version))

    def accept(self, answer: requests.Response) -> None:
        """Whoever asked must not be refused."""
        assert answer.status_code in (200, 202, 204), answer.text

    def set_metadata(self, uuid: str, metadata: dict[str, str]) -> None:
        """In place of what it has, whatever state it is in."""
        change = sa.update(servers).where(servers.c.uuid == uuid).values({servers.c.metadata: metadata})
        with self.writing() as connection:
            connection.execute(change)

    def set_down(self, host: str, *, down: bool) -> None:
        """An operator says so."""
        self._set_service(host, {"forced_down": down})
        (self.down.add if down else self.down.discard)(host)

    def set_disabled(self, host: str, *, disabled: bool) -> None:
        self._set_service(host, {"status": "disabled" if disabled else "enabled"})
        (self._disabled.add if disabled else self._disabled.discard)(host)

    def _set_service(self, host: str, body: dict[str, Any]) -> None:
        services = self.get(f"/v2.1/os-services?binary=nova-compute&host={host}")["services"]
        self.accept(self.call("PUT", f"/v2.1/os-services/{services[0]['id']}", body))

    def clear(self) -> None:
        """Nothing is left of any server; hosts are as they were."""
        for host in set(self.down):
            self.set_down(host, down=False)
        for host in set(self._disabled):
            self.set_disabled(host, disabled=False)
        self.cloud.neutron.needs = None
        for uuid in self.there():
            if self.row(uuid).task_state is not None:
                self.act(uuid, {"os-resetState": {"state": "error"}})
            self.act(uuid, {"forceDelete": None})
        self.await_rest()
        for image in self.get("/image/v2/images?visibility=private")["images"]:
            self.call("DELETE", f"/image/v2/images/{image['id']}")

    # ------------------------------------------------------------ the cloud

    @contextlib.contextmanager
    def writing(self) -> Any:
        """Into the cloud's own tables; on SQLite who reads first, and then writes, may be too late for it."""
        with self.engine.execution_options(**{engine.IMMEDIATE: True}).begin() as connection:
            yield connection

    def revive(self) -> None:
        """Start what has died."""
        with self._reviving:
            dead = [part for part in self.cloud.parts if part.ended_by_itself]
            for part in dead:
                assert isinstance(part, ForkedPart)
                self._end_leases(part.pid)
                part.start()
            self.deaths += len(dead)

    def _end_leases(self, pid: int) -> None:
        """As if its leases had run out by now; of chores nobody knows whose they are, and others are not at
        them."""
        change = (
            sa.update(operations)
            .where(operations.c.lease.like(f"%:{pid}:%"), operations.c.leased_until.is_not(None))
            .values(leased_until=utcnow().replace(year=2000))
        )
        with self.writing() as connection:
            connection.execute(change)
            connection.execute(sa.update(chores).values(leased_until=utcnow().replace(year=2000)))

    # ------------------------------------------------------------ looking

    def _read(self) -> Connection:
        return self.engine.connect()

    def unfinished(self) -> list[str]:
        with self._read() as connection:
            rows = connection.execute(
                sa.select(operations.c.kind, operations.c.step, operations.c.due_at).where(
                    operations.c.finished_at.is_(None)
                )
            ).all()
            stages = connection.execute(sa.select(audits.c.stage).where(audits.c.finished_at.is_(None)))
            asked = [f"audit/{stage}" for stage in stages.scalars()]
        now = utcnow()
        due = [
            f"{row.kind}/{row.step}"
            for row in rows
            if row.due_at is not None and (row.due_at - now).total_seconds() < _LATER
        ]
        return due + asked

    def await_rest(self, seconds: float = 30.0) -> None:
        wait_until(lambda: not self.unfinished(), f"the end of {self.unfinished()}", seconds)

    def last_operation(self) -> int:
        with self._read() as connection:
            return int(connection.execute(sa.select(sa.func.max(operations.c.id))).scalar_one() or 0)

    def outcome(self, kind: str) -> tuple[str, str | None]:
        """Of the newest operation of a kind."""
        query = (
            sa.select(operations.c.outcome, operations.c.error)
            .where(operations.c.kind == kind)
            .order_by(operations.c.id.desc())
            .limit(1)
        )
        with self._read() as connection:
            row = connection.execute(query).one()
        return row.outcome, row.error

    def there(self) -> list[str]:
        with self._read() as connection:
            query = sa.select(servers.c.uuid).where(servers.c.deleted_at.is_(None))
            return list(connection.execute(query).scalars())

    def row(self, uuid: str) -> sa.Row[Any]:
        """The server's."""
        with self._read() as connection:
            return connection.execute(sa.select(servers).where(servers.c.uuid == uuid)).one()

    def node_of(self, host: str) -> str:
        with self._read() as connection:
            return str(connection.execute(sa.select(nodes.c.uuid).where(nodes.c.host == host)).scalar_one())
