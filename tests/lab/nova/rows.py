"""A cloud of Nova's without a Nova: rows as it writes them, in databases of its own schema."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from tests.lab.nova.pristine import pristine_dumps
from tests.lab.pristine import load
from tests.support.postgres import Postgres

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901)
_API = ("build_requests", "cell_mappings", "flavors")
_CELL = (*("block_device_mapping", "migrations", "instance_extra", "instances", "compute_nodes", "services"),)
"""Tables that tests write to, in an order in which they can be emptied."""
CELL0 = "00000000-0000-0000-0000-000000000000"


def uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


@dataclass(frozen=True)
class Database:
    url: str
    engine: Engine

    def insert(self, table: str, **columns: Any) -> None:
        names = [f'"{name}"' for name in columns]
        values = [f":{name}" for name in columns]
        self.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(values)})", **columns)

    def execute(self, statement: str, **values: Any) -> None:
        with self.engine.begin() as connection:
            connection.execute(sa.text(statement), values)


@dataclass
class NovaRows:
    """One with a cell for each of its `hosts`."""

    api: Database
    cells: list[Database]
    cell0: Database
    hosts: tuple[str, ...]

    @classmethod
    def made(cls, server: Postgres, name: str, hosts: tuple[str, ...]) -> NovaRows:
        dumps = pristine_dumps()
        made = cls(
            _load(server, f"nova_rows_{name}_api", dumps / "api.sql"),
            [_load(server, f"nova_rows_{name}_{host}", dumps / "cell.sql") for host in hosts],
            _load(server, f"nova_rows_{name}_cell0", dumps / "cell.sql"),
            hosts,
        )
        made.start_anew()
        return made

    def start_anew(self) -> None:
        """With nothing but hosts and a flavor: that takes less than new databases."""
        for database in (self.api, *self.cells, self.cell0):
            for table in _API if database is self.api else _CELL:
                database.execute(f"DELETE FROM {table}")
        self._map_cells()
        for number, host in enumerate(self.hosts):
            self._add_host(number, host)
        self.api.insert("flavors", **FLAVOR, created_at=MOMENT)

    def close(self) -> None:
        for database in (self.api, *self.cells, self.cell0):
            database.engine.dispose()

    def add_server(self, number: int, *, cell: int | None = 0, state: str = "active", **columns: Any) -> str:
        """Without a cell it never came to a host."""
        database = self.cell0 if cell is None else self.cells[cell]
        host = None if cell is None else self.hosts[cell]
        columns = {
            "uuid": uuid(number),
            "display_name": f"server-{number}",
            "vm_state": state,
            "deleted": 0,
            "host": host,
            "node": host,
            "project_id": "project",
            "user_id": "user",
            "hostname": "guest",
            "created_at": MOMENT,
            "updated_at": MOMENT,
            "reservation_id": "r-1",
            "launch_index": 0,
            "power_state": 1,
            "locked": False,
            "hidden": False,
            "image_ref": "image",
            **({} if cell is None else {"launched_at": MOMENT}),
            **columns,
        }
        database.insert("instances", **columns)
        flavor = json.dumps({"cur": _object("Flavor", {**FLAVOR, "extra_specs": {"a": "b"}}), "old": None})
        database.insert("instance_extra", instance_uuid=columns["uuid"], flavor=flavor, deleted=0)
        return str(columns["uuid"])

    def _map_cells(self) -> None:
        for number, database in enumerate((self.cell0, *self.cells)):
            name = "cell0" if not number else f"cell{number}"
            mapped = {"uuid": CELL0 if not number else uuid(number), "name": name, "transport_url": ""}
            self.api.insert("cell_mappings", **mapped, database_connection=database.url, disabled=False)

    def _add_host(self, number: int, host: str) -> None:
        """Each cell begins to count at one."""
        cell = self.cells[number]
        service = {"uuid": uuid(900 + number), "host": host, "binary": "nova-compute", "report_count": 1}
        cell.insert("services", **service, id=1, created_at=MOMENT, disabled=False, version=70, deleted=0)
        size = {"vcpus": 8, "memory_mb": 4096, "local_gb": 100, "vcpus_used": 0, "memory_mb_used": 0}
        cell.insert(
            "compute_nodes",
            **{**size, "id": 1, "uuid": uuid(800 + number), "host": host, "hypervisor_hostname": host},
            hypervisor_type="QEMU",
            hypervisor_version=8,
            local_gb_used=0,
            cpu_info="",
            created_at=MOMENT,
            deleted=0,
        )


FLAVOR: dict[str, Any] = {
    "id": 1,
    "flavorid": "tiny",
    "name": "m1.tiny",
    "vcpus": 1,
    "memory_mb": 512,
    "root_gb": 1,
    "ephemeral_gb": 0,
    "swap": 0,
    "rxtx_factor": 1.0,
    "disabled": False,
    "is_public": True,
}


def _object(name: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"nova_object.name": name, "nova_object.version": "1.0", "nova_object.data": data}


def _load(server: Postgres, name: str, dump: Path) -> Database:
    url = load(server, name, dump).replace("+psycopg2:", "+psycopg:")
    return Database(url, sa.create_engine(url, poolclass=sa.NullPool))
