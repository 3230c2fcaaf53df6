"""An existing SQLite database gets tables that give no id twice; all that is in it stays as it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db import bulk, engine, migrate, schema_fit
from moorage.db.database import Database
from moorage.db.tables import compute, moves, placement
from moorage.db.tables.metadata import METADATA

BEFORE, AFTER = "0007", "0008"
PROVIDERS = ("id", "uuid", "name", "generation", "parent_id", "root_id", "updated_at")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Of the schema before, on SQLite."""
    connected = engine.connect(f"sqlite:///{tmp_path}/moorage.sqlite", sqlite_synchronous="OFF")
    migrate.sync(connected, BEFORE)
    yield Database(connected)
    connected.dispose()


def _tables(connection: sa.Connection) -> list[str]:
    """Those that there are, of ours."""
    return [name for name in sa.inspect(connection).get_table_names() if name in METADATA.tables]


def contents(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    with database.snapshot() as connection:
        return {
            name: [tuple(row) for row in connection.exec_driver_sql(f"SELECT * FROM {name} ORDER BY 1, 2")]
            for name in _tables(connection)
        }


def structure(database: Database) -> dict[str, dict[str, Any]]:
    """Columns, keys, constraints and indexes, in the words of SQLite itself."""
    found: dict[str, dict[str, Any]] = {}
    with database.snapshot() as connection:
        for name in _tables(connection):
            parts = found[name] = {
                pragma: [tuple(row) for row in connection.exec_driver_sql(f"PRAGMA {pragma}({name})")]
                for pragma in ("table_xinfo", "foreign_key_list", "index_list")
            }
            parts["index_list"] = sorted(row[1:] for row in parts["index_list"])
            parts["indexes"] = {
                row[0]: [tuple(one) for one in connection.exec_driver_sql(f"PRAGMA index_xinfo({row[0]})")]
                for row in parts["index_list"]
            }
    return found


def fill(connection: sa.Connection) -> None:
    """Something in every table that refers to another."""
    now = utcnow()
    rows: list[tuple[Any, ...]] = [
        (number, uuids.generate(), f"node-{number}", 1, None if number % 3 == 1 else number - 1, number, now)
        for number in (1, 2, 3)
    ]
    bulk.insert(connection, placement.providers, PROVIDERS, rows)
    connection.execute(sa.insert(placement.resource_classes).values(id=5, name="VCPU"))
    connection.execute(sa.insert(placement.traits).values(id=6, name="HW_CPU_X86_VMX"))
    stock = {"total": 8, "reserved": 0, "min_unit": 1, "max_unit": 8, "step_size": 1, "allocation_ratio": 1.0}
    connection.execute(sa.insert(placement.inventories).values(provider_id=1, class_id=5, **stock))
    connection.execute(sa.insert(placement.provider_traits).values(provider_id=1, trait_id=6))
    connection.execute(sa.insert(placement.consumer_types).values(id=2, name="INSTANCE"))
    consumer = {"uuid": uuids.generate(), "project_id": "p", "user_id": "u"}
    connection.execute(sa.insert(placement.consumers).values(id=9, type_id=2, **consumer))
    connection.execute(
        sa.insert(placement.allocations).values(consumer_id=9, provider_id=1, class_id=5, used=1)
    )
    connection.execute(
        sa.insert(placement.changes), [{"provider_id": 70, "kind": 1}, {"provider_id": None, "kind": 3}]
    )
    _fill_compute(connection)


def _fill_compute(connection: sa.Connection) -> None:
    owned = {"project_id": "p", "user_id": "u"}
    connection.execute(
        sa.insert(compute.flavors).values(id=3, flavorid="1", name="tiny", vcpus=1, ram=1, disk=1)
    )
    connection.execute(sa.insert(compute.flavor_projects).values(flavor_id=3, project_id="p"))
    server = {"uuid": uuids.generate(), "name": "s", "hostname": "s", "reservation_id": "r", "flavor": {}}
    connection.execute(
        sa.insert(compute.servers).values(id=4, flavorid="1", vm_state="active", **server, **owned)
    )
    connection.execute(
        sa.insert(compute.actions).values(id=8, server_id=4, action="create", request_id="r", **owned)
    )
    connection.execute(
        sa.insert(compute.operations).values(id=11, server_id=4, kind="build", step="begin", action_id=80)
    )
    connection.execute(
        sa.insert(compute.traces).values(id=1, server_id=4, operation_id=110, attempt=1, trace={})
    )
    source = {"source_host": "h", "source_node": "n", "source_node_uuid": uuids.generate()}
    flavors = {"old_flavor": {}, "new_flavor": {}, "old_flavor_id": 30, "new_flavor_id": None}
    connection.execute(
        sa.insert(moves.migrations).values(
            id=2,
            uuid=uuids.generate(),
            server_id=4,
            server_uuid=server["uuid"],
            kind="resize",
            status="done",
            old_state="active",
            **owned,
            **source,
            **flavors,
        )
    )


def next_id(database: Database, table: sa.Table) -> int:
    with database.write() as connection:
        (drawn,) = bulk.numbers(connection, table, 1)
    return drawn


def test_rows_keys_constraints_and_indexes_stay(database: Database) -> None:
    with database.write() as connection:
        fill(connection)
    before = contents(database), structure(database)
    migrate.sync(database.engine, AFTER)
    assert (contents(database), structure(database)) == before
    with database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA foreign_key_check").all() == []
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar_one() == "ok"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1


def test_references_hold_afterwards(database: Database) -> None:
    with database.write() as connection:
        fill(connection)
    migrate.sync(database.engine)
    with pytest.raises(sa.exc.IntegrityError), database.write() as connection:
        connection.execute(sa.delete(placement.providers).where(placement.providers.c.id == 1))
    with database.write() as connection:
        connection.execute(sa.delete(compute.servers))
        assert not connection.execute(sa.select(compute.operations.c.id)).all()


@pytest.mark.parametrize(
    ("table", "first"),
    [
        (placement.providers, 71),
        (placement.consumers, 10),
        (placement.traits, 7),
        (compute.flavors, 31),
        (compute.actions, 81),
        (compute.operations, 111),
        (compute.servers, 5),
        (compute.keypairs, 1),
    ],
)
def test_ids_begin_above_all_that_anything_mentions(database: Database, table: sa.Table, first: int) -> None:
    with database.write() as connection:
        fill(connection)
    migrate.sync(database.engine)
    assert next_id(database, table) == first


def test_an_empty_database_begins_at_one(database: Database) -> None:
    migrate.sync(database.engine)
    assert {
        table.name: next_id(database, table) for table in METADATA.tables.values() if "id" in table.c
    } == {table.name: 1 for table in METADATA.tables.values() if "id" in table.c}


def test_a_large_fleet_takes_seconds(database: Database) -> None:
    with database.write() as connection:
        fill(connection)
        connection.exec_driver_sql(
            "WITH RECURSIVE n(i) AS (SELECT 4 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
            "INSERT INTO providers SELECT i, lower(hex(randomblob(16))), 'node-' || i, 1, NULL, i, "
            "'2026-11-17 00:00:00.000000' FROM n"
        )
    began = time.process_time()
    migrate.sync(database.engine)
    assert time.process_time() - began < 10, "in processor's time, whatever else the machine does"
    assert next_id(database, placement.providers) == 100_001


def test_a_row_that_refers_to_nothing_stops_it_and_changes_nothing(database: Database) -> None:
    with database.write() as connection:
        fill(connection)
    line = database.engine.raw_connection()
    line.execute("PRAGMA foreign_keys=OFF")
    line.execute("DELETE FROM traits")
    line.detach()
    line.close()
    before = contents(database), structure(database)
    with pytest.raises(RuntimeError, match="provider_traits"):
        migrate.sync(database.engine)
    assert schema_fit.version(database.engine) == BEFORE
    assert (contents(database), structure(database)) == before
    with database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1
