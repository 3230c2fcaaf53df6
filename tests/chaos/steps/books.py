"""What there is of a server, everywhere; and what does not agree with the rest."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import sqlalchemy as sa

from moorage.db.tables.compute import quota_usage
from moorage.db.tables.images import images
from moorage.db.tables.moves import migrations
from moorage.db.tables.placement import allocations, consumers, providers, resource_classes
from tests.chaos.steps.clouds import HOSTS, kept_by, open_tasks
from tests.chaos.steps.hooks import BANDWIDTH
from tests.chaos.steps.user import User

_POWER = {
    "ACTIVE": 1,
    "RESCUE": 1,
    "PAUSED": 3,
    "SHUTOFF": 4,
    "SOFT_DELETED": 4,
    "SHELVED": 4,
    "SUSPENDED": 7,
}


class Picture(msgspec.Struct, frozen=True):
    """How an operation ended, in words that are the same each time."""

    outcome: str
    status: str | None
    """Of the server; None: there is none."""
    moved: bool
    addresses: int
    power: int | None
    flavor: str
    migrations: list[str]
    images: list[str]
    actions: list[str]
    """What was asked of it, and whether that failed."""


class Books:
    def __init__(self, user: User, uuid: str, home: str | None) -> None:
        """`home` is the host that the server was on before."""
        self._user = user
        self._uuid = uuid
        self._home = home
        self._server: Any = user.server(uuid) if uuid in user.there() else None
        self._host = None if self._server is None else self._server["OS-EXT-SRV-ATTR:host"]

    def picture(self, kind: str) -> Picture:
        outcome, _ = self._user.outcome(kind)
        if self._server is None:
            return Picture(outcome, None, False, 0, None, "", [], self._images(), [])
        return Picture(
            outcome,
            self._server["status"],
            self._host != self._home,
            sum(len(found) for found in self._server["addresses"].values()),
            self._server["OS-EXT-STS:power_state"],
            self._server["flavor"]["original_name"],
            [one["status"] for one in self._migrations()],
            self._images(),
            self._actions(),
        )

    def differences(self) -> list[str]:
        """Sentences; some may be on their way."""
        server = self._server
        task = None if server is None else server["OS-EXT-STS:task_state"]
        status = None if server is None else server["status"]
        return [
            *([] if task is None else [f"it is at {task}"]),
            *(f"not at its end: {one}" for one in self._user.unfinished()),
            *_unlike("allocations", self._held(), self._due()),
            *_unlike("ports", self._ports(), self._plugged()),
            *_unlike("hosts", self._copies(), self._wanted_copies()),
            *_unlike("quota", self._quota(), self._counted()),
            *(f"{host} has work left of {one}" for host in self._hosts() for one in self._open_tasks(host)),
            *(f"a migration is {one['status']}" for one in self._active() if status != "VERIFY_RESIZE"),
            *(f"an image is {state}" for state in self._image_states() if state != "active"),
        ]

    # ------------------------------------------------------------ Placement

    def _held(self) -> dict[str, Any]:
        query = (
            sa.select(consumers.c.uuid, providers.c.name, resource_classes.c.name, allocations.c.used)
            .join_from(allocations, consumers, allocations.c.consumer_id == consumers.c.id)
            .join(providers, allocations.c.provider_id == providers.c.id)
            .join(resource_classes, allocations.c.class_id == resource_classes.c.id)
        )
        held: dict[str, Any] = {}
        with self._user.engine.connect() as connection:
            for consumer, provider, name, used in connection.execute(query):
                held.setdefault(f"{consumer} at {provider}", {})[name] = used
        return held

    def _due(self) -> dict[str, Any]:
        if self._server is None:
            return {}
        needs = self._user.cloud.neutron.needs is not None and bool(self._own_ports())
        bandwidth = BANDWIDTH if needs else {}
        amounts = {**_resources(self._server["flavor"]), **bandwidth}
        due = {f"{self._uuid} at {self._host}": amounts} if self._host else {}
        for one in self._active():
            if self._server["status"] == "VERIFY_RESIZE":
                due[f"{one['uuid']} at {one['source_compute']}"] = _resources(one["old"])
        return due

    def _is_apart(self) -> bool:
        """It is not resized where it was."""
        return bool(self._host != self._home)

    # ------------------------------------------------------------ Neutron

    def _own_ports(self) -> list[Any]:
        return self._user.cloud.neutron.ports_of(self._uuid)

    def _ports(self) -> dict[str, Any]:
        neutron = self._user.cloud.neutron
        return {
            port["id"]: (
                port["device_id"],
                port["binding:host_id"],
                [binding["host"] for binding in neutron.bindings.get(port["id"], ())],
            )
            for port in neutron.owned()
        }

    def _plugged(self) -> dict[str, Any]:
        """As the server says."""
        if self._server is None:
            return {}
        row = self._user.row(self._uuid)
        return {port["id"]: (self._uuid, self._host or "", []) for port in row.request.get("ports", [])}

    # ------------------------------------------------------------ hosts

    def _copies(self) -> dict[str, Any]:
        return {
            host: server.power
            for host in HOSTS
            for server in kept_by(self._user.cloud, host)
            if server.uuid == self._uuid
        }

    def _wanted_copies(self) -> dict[str, Any]:
        if self._host is None:
            return {}
        wanted = {self._host: _POWER.get(self._server["status"], self._server["OS-EXT-STS:power_state"])}
        if self._server["status"] == "VERIFY_RESIZE" and self._is_apart():
            wanted[self._active()[0]["source_compute"]] = 4
        return wanted

    def _hosts(self) -> list[str]:
        """Those that are not taken for dead."""
        return [host for host in HOSTS if host not in self._user.down]

    def _open_tasks(self, host: str) -> list[str]:
        return open_tasks(self._user.cloud, host)

    # ------------------------------------------------------------ the cloud's own

    def _quota(self) -> dict[str, Any]:
        with self._user.engine.connect() as connection:
            row = connection.execute(sa.select(quota_usage)).one()
        return {"instances": row.instances, "cores": row.cores, "ram": row.ram}

    def _counted(self) -> dict[str, Any]:
        if self._server is None or self._server["status"] == "SOFT_DELETED":
            return {"instances": 0, "cores": 0, "ram": 0}
        flavor = self._server["flavor"]
        sizes = {"cores": flavor["vcpus"], "ram": flavor["ram"]}
        if self._server["status"] == "VERIFY_RESIZE":
            old = self._active()[0]["old"]
            sizes = {"cores": max(sizes["cores"], old["vcpus"]), "ram": max(sizes["ram"], old["ram"])}
        return {"instances": 1, **sizes}

    def _migrations(self) -> list[Any]:
        """The newest first."""
        query = (
            sa.select(migrations)
            .where(migrations.c.server_uuid == self._uuid)
            .order_by(migrations.c.id.desc())
        )
        with self._user.engine.connect() as connection:
            return [
                {
                    "uuid": row.uuid,
                    "status": row.status,
                    "active": row.active,
                    "source_compute": row.source_host,
                    "old": row.old_flavor,
                }
                for row in connection.execute(query)
            ]

    def _active(self) -> list[Any]:
        return [one for one in self._migrations() if one["active"]]

    def _image_states(self) -> list[str]:
        with self._user.engine.connect() as connection:
            return list(connection.execute(sa.select(images.c.status)).scalars())

    def _images(self) -> list[str]:
        private = sa.select(images.c.name).where(images.c.visibility == "private")
        with self._user.engine.connect() as connection:
            names = Counter(connection.execute(private).scalars())
        return sorted(f"{count} {name.partition('-')[2] or name}" for name, count in names.items())

    def _actions(self) -> list[str]:
        listed = self._user.get(f"/v2.1/servers/{self._uuid}/os-instance-actions")["instanceActions"]
        return [f"{one['action']}: {one['message']}" for one in listed]


def _resources(flavor: Any) -> dict[str, int]:
    found = {"VCPU": flavor["vcpus"], "MEMORY_MB": flavor["ram"], "DISK_GB": flavor["disk"]}
    return {name: amount for name, amount in found.items() if amount}


def _unlike(what: str, found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    return [] if found == wanted else [f"{what}: {found}, not {wanted}"]
