"""Do the books of a whole cloud balance? What the API shows, held against Placement, pool and hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from moorage.db import engine
from moorage.db.tables import compute as tables
from moorage.db.tables.moves import migrations
from tests.chaos.books import check_counters
from tests.support.deployment import EXCLUSIVE_CLASS, EXCLUSIVE_FLAVOR, EXCLUSIVE_HOST, Deployment

SETTLED = {"ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "RESCUE", "ERROR"}
_POWER = {"ACTIVE": 1, "RESCUE": 1, "PAUSED": 3, "SHUTOFF": 4, "SUSPENDED": 7}
_FLAVOR = {"vcpus": 1, "ram": 64, "disk": 1}

Difference = str
"""A sentence about something that does not agree."""


@dataclass(frozen=True)
class Shown:
    """A server as the API shows it."""

    uuid: str
    project: str
    status: str
    task: str | None
    host: str | None
    node: str | None
    flavor: str
    addresses: frozenset[str]

    @classmethod
    def of(cls, body: dict[str, Any]) -> Shown:
        return cls(
            uuid=body["id"],
            project=body["tenant_id"],
            status=body["status"],
            task=body["OS-EXT-STS:task_state"],
            host=body["OS-EXT-SRV-ATTR:host"],
            node=body["OS-EXT-SRV-ATTR:hypervisor_hostname"],
            flavor=body["flavor"]["original_name"],
            addresses=frozenset(one["addr"] for network in body["addresses"].values() for one in network),
        )

    @property
    def settled(self) -> bool:
        return self.status in SETTLED and self.task is None


class CloudBooks:
    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._engine = engine.connect(deployment.database_url)

    def close(self) -> None:
        self._engine.dispose()

    def in_flight(self) -> int:
        """Operations that are not at their end."""
        query = sa.select(sa.func.count()).where(tables.operations.c.finished_at.is_(None))
        with self._engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def moves(self) -> Counter[str]:
        """How the moves of servers ended, or how far they are."""
        with self._engine.connect() as connection:
            return Counter(connection.execute(sa.select(migrations.c.status)).scalars())

    def servers(self) -> list[Shown]:
        found: list[Shown] = []
        marker = ""
        while True:
            path = f"/v2.1/servers/detail?all_tenants=1&limit=500{marker}"
            page = self._deployment.get(path)["servers"]
            if not page:
                return found
            found += [Shown.of(body) for body in page]
            marker = f"&marker={page[-1]['id']}"

    def unsettled(self) -> list[Shown]:
        return [server for server in self.servers() if not server.settled]

    def differences(self) -> list[Difference]:
        """All that does not agree; some of it may still be on its way."""
        servers = self.servers()
        placed = [server for server in servers if server.host is not None]
        return [
            *(f"{one.uuid} is {one.status} with task {one.task}" for one in servers if not one.settled),
            *self._operations(),
            *self._allocations(placed),
            *self._addresses(placed),
            *self._hosts(placed),
            *self._quotas(servers),
        ]

    def check_counters(self) -> None:
        check_counters(self._deployment.database_url)

    def _operations(self) -> list[Difference]:
        count = self.in_flight()
        return [f"{count} operations are not at their end"] if count else []

    def _allocations(self, placed: Sequence[Shown]) -> list[Difference]:
        """Exactly what the flavor asks for, on exactly the node that the server is on."""
        listed = self._deployment.get_placement("/resource_providers")["resource_providers"]
        held: dict[tuple[str, str], Any] = {}
        for provider in listed:
            path = f"/resource_providers/{provider['uuid']}/allocations"
            for consumer, body in self._deployment.get_placement(path)["allocations"].items():
                held[consumer, provider["name"]] = body["resources"]
        wanted = {(server.uuid, server.node): _resources(server.flavor) for server in placed}
        exclusive = Counter(node for (_, node), amounts in held.items() if EXCLUSIVE_CLASS in amounts)
        return [
            *(f"Placement has no {wanted[key]} for {key}" for key in wanted.keys() - held.keys()),
            *(f"Placement has {held[key]} for {key}" for key in held.keys() - wanted.keys()),
            *(f"{key} holds {held[key]}" for key in held.keys() & wanted.keys() if held[key] != wanted[key]),
            *(f"{node} is allocated {count} times" for node, count in exclusive.items() if count > 1),
        ]

    def _addresses(self, placed: Sequence[Shown]) -> list[Difference]:
        table = tables.addresses
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(table.c.server_uuid, table.c.address)).all()
        given = {(row.server_uuid, row.address) for row in rows}
        shown = {(server.uuid, address) for server in placed for address in server.addresses}
        return [
            *(f"the pool gave out {pair}, which nobody has" for pair in given - shown),
            *(f"{pair} is not from the pool" for pair in shown - given),
            *(f"{server.uuid} has no address" for server in placed if not server.addresses),
        ]

    def _hosts(self, placed: Sequence[Shown]) -> list[Difference]:
        """What the drivers have in their own files is what the API shows there, each in its power state."""
        names = {row["id"]: row["hypervisor_hostname"] for row in self._hypervisors()}
        kept = {
            (server.uuid, host, names.get(server.node_uuid, server.node_uuid)): server.power
            for host in self._deployment.agents
            for server in self._deployment.kept_by(host)
        }
        shown = {(server.uuid, server.host, server.node): _POWER.get(server.status) for server in placed}
        crowded = Counter(node for _, host, node in kept if host == EXCLUSIVE_HOST)
        return [
            *(f"a host has {key}, the API does not show it" for key in kept.keys() - shown.keys()),
            *(f"no host has {key}" for key in shown.keys() - kept.keys()),
            *(
                f"{key} is in power state {kept[key]}, not {shown[key]}"
                for key in kept.keys() & shown.keys()
                if shown[key] not in (None, kept[key])
            ),
            *(f"{node} has {count} servers" for node, count in crowded.items() if count > 1),
        ]

    def _hypervisors(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._deployment.get("/v2.1/os-hypervisors")["hypervisors"]
        return found

    def _quotas(self, servers: Sequence[Shown]) -> list[Difference]:
        """Of every project that ever had a server; all servers here are of the same size."""
        table = tables.quota_usage
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(table)).all()
        counts = Counter(server.project for server in servers)
        return [
            f"{row.project_id} is counted for {row.instances}, {row.cores}, {row.ram}: it has {count} servers"
            for row in rows
            for count in [counts[row.project_id]]
            if (row.instances, row.cores, row.ram)
            != (count, count * _FLAVOR["vcpus"], count * _FLAVOR["ram"])
        ]


def _resources(flavor: str) -> dict[str, int]:
    if flavor == EXCLUSIVE_FLAVOR:
        return {EXCLUSIVE_CLASS: 1}
    return {"VCPU": _FLAVOR["vcpus"], "MEMORY_MB": _FLAVOR["ram"], "DISK_GB": _FLAVOR["disk"]}
