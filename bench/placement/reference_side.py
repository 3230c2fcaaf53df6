"""The reference on PostgreSQL, filled behind its back: its API would take hours for the larger fleets."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psycopg

from bench.placement.nodes import ASK, Node
from tests.support import reference
from tests.support.postgres import Postgres
from tests.support.processes import Service

Row = tuple[Any, ...]


def start(directory: Path, server: Postgres, database: str, nodes: list[Node], workers: int) -> Service:
    """The reference's best set-up that we know of: uWSGI, kept-alive connections, statistics up to date."""
    directory.mkdir(parents=True)
    url = server.create_kinder_database(database)
    reference.configure(directory, url)
    reference.sync_database(directory)
    service = reference.start(directory, workers=workers)  # writes the standard classes and traits
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        _fill(connection, nodes)
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    return service


def _fill(connection: psycopg.Connection[Any], nodes: list[Node]) -> None:
    class_ids = _ids(connection, "SELECT name, id FROM resource_classes")
    trait_ids = _ids(connection, "SELECT name, id FROM traits")
    aggregate_ids = {
        name: number
        for number, name in enumerate(dict.fromkeys(a for node in nodes for a in node.aggregates), start=1)
    }
    numbered = list(enumerate(nodes, start=1))
    used = [(number, node) for number, node in numbered if node.occupant]
    connection.execute("INSERT INTO projects (id, external_id) VALUES (1, 'bench')")
    connection.execute("INSERT INTO users (id, external_id) VALUES (1, 'bench')")
    _copy(
        connection,
        "resource_providers (id, uuid, name, generation, root_provider_id, created_at, updated_at)",
        ((number, node.uuid, node.name, 1, number, "now", "now") for number, node in numbered),
    )
    _copy(
        connection,
        "inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit,"
        " step_size, allocation_ratio, created_at, updated_at)",
        (
            (number, class_ids[name], i.total, i.reserved, 1, i.total, 1, i.allocation_ratio, "now", "now")
            for number, node in numbered
            for name, i in node.inventories.items()
        ),
    )
    _copy(
        connection,
        "resource_provider_traits (resource_provider_id, trait_id)",
        ((number, trait_ids[trait]) for number, node in numbered for trait in node.traits),
    )
    _copy(connection, "placement_aggregates (uuid, id)", aggregate_ids.items())
    _copy(
        connection,
        "resource_provider_aggregates (resource_provider_id, aggregate_id)",
        ((number, aggregate_ids[a]) for number, node in numbered for a in node.aggregates),
    )
    _copy(
        connection,
        "consumers (uuid, project_id, user_id, generation)",
        ((node.occupant, 1, 1, 1) for _, node in used),
    )
    _copy(
        connection,
        "allocations (resource_provider_id, consumer_id, resource_class_id, used, created_at, updated_at)",
        (
            (number, node.occupant, class_ids[name], amount, "now", "now")
            for (number, node), (name, amount) in itertools.product(used, ASK.items())
        ),
    )
    for table in ("resource_providers", "placement_aggregates"):
        connection.execute(
            f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))"
        )
    for table in ("projects", "users"):
        connection.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), 1)")


def _ids(connection: psycopg.Connection[Any], query: str) -> dict[str, int]:
    return dict(connection.execute(query).fetchall())


def _copy(connection: psycopg.Connection[Any], into: str, rows: Iterable[Row]) -> None:
    with connection.cursor().copy(f"COPY {into} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
