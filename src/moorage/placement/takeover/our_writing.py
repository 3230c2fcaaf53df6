"""Whole records into our own database, which has no providers and no consumers yet."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db import bulk, lock
from moorage.db.tables.placement import (
    allocations,
    consumer_types,
    consumers,
    inventories,
    provider_aggregates,
    provider_traits,
    providers,
    resource_classes,
    traits,
)
from moorage.db.upsert import insert_if_absent
from moorage.placement import feed
from moorage.placement.store import counters, names
from moorage.placement.store.inventories import FIELDS
from moorage.placement.takeover.records import NameTables, WholeConsumer, WholeProvider

_TABLES = (
    *(resource_classes, traits, providers, inventories, provider_traits, provider_aggregates),
    *(consumer_types, consumers, allocations),
)


class OurWriting:
    """In one transaction, which nobody else's writes come between."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        if lock.is_by_row(connection):
            listed = ", ".join(table.name for table in _TABLES)
            connection.execute(sa.text("SET LOCAL statement_timeout = 0"))
            connection.execute(sa.text(f"LOCK TABLE {listed} IN SHARE ROW EXCLUSIVE MODE"))
        self._classes: dict[str, int] = {}
        self._traits: dict[str, int] = {}
        self._types: dict[str, int] = {}
        self._ids: dict[str, int] = {}
        """Of providers."""
        self._written: set[str] = set()
        self._parents: list[tuple[int, int]] = []
        """Of providers that came before their parents."""

    def begin(self, known: NameTables, provider_uuids: Sequence[str]) -> None:
        names.ensure_standard(self._connection)
        self._add(resource_classes, [{"name": n, "updated_at": at} for n, at in known.classes.items()])
        self._add(traits, [{"name": n, "created_at": at} for n, at in known.traits.items()])
        self._add(consumer_types, [{"name": name} for name in known.types])
        self._classes = self._ids_of(resource_classes)
        self._traits = self._ids_of(traits)
        self._types = self._ids_of(consumer_types)
        drawn = bulk.numbers(self._connection, providers, len(provider_uuids))
        self._ids = dict(zip(provider_uuids, drawn, strict=True))

    def add_providers(self, batch: Sequence[WholeProvider]) -> None:
        ids, rows = self._ids, []
        for one in batch:
            parent = None if one.parent is None else ids[one.parent]
            if parent is not None and one.parent not in self._written:
                self._parents.append((ids[one.uuid], parent))
                parent = None
            root = ids[one.root]
            rows.append((ids[one.uuid], one.uuid, one.name, one.generation, parent, root, one.changed_at))
            self._written.add(one.uuid)
        columns = ("id", "uuid", "name", "generation", "parent_id", "root_id", "updated_at")
        bulk.insert(self._connection, providers, columns, rows)
        self._add_belongings(batch)

    def _add_belongings(self, batch: Sequence[WholeProvider]) -> None:
        ids = self._ids
        bulk.insert(
            self._connection,
            inventories,
            ("provider_id", "class_id", *FIELDS, "updated_at", "used"),
            [
                (ids[one.uuid], self._classes[name], *values, 0)
                for one in batch
                for name, *values in one.inventories
            ],
        )
        bulk.insert(
            self._connection,
            provider_traits,
            ("provider_id", "trait_id"),
            [(ids[one.uuid], self._traits[trait]) for one in batch for trait in one.traits],
        )
        bulk.insert(
            self._connection,
            provider_aggregates,
            ("provider_id", "aggregate_uuid"),
            [(ids[one.uuid], aggregate) for one in batch for aggregate in one.aggregates],
        )

    def add_consumers(self, batch: Sequence[WholeConsumer]) -> None:
        columns = ("uuid", "project_id", "user_id", "generation", "type_id")
        made = bulk.insert_numbered(
            self._connection,
            consumers,
            columns,
            [
                (one.uuid, one.project_id, one.user_id, one.generation, self._types.get(one.type or ""))
                for one in batch
            ],
        )
        bulk.insert(
            self._connection,
            allocations,
            ("consumer_id", "provider_id", "class_id", "used", "created_at"),
            [
                (made[one.uuid], self._ids[held.provider], self._classes[held.resource_class], *held[2:])
                for one in batch
                for held in one.allocations
            ],
        )

    def finish(self) -> None:
        """Parents, counters, and word to every process that has a picture of the fleet."""
        for child, parent in self._parents:
            self._connection.execute(
                sa.update(providers)
                .where(providers.c.id == child)
                .values(parent_id=parent, updated_at=providers.c.updated_at)
            )
        if lock.is_by_row(self._connection):
            self._connection.execute(sa.text(f"ANALYZE {', '.join(table.name for table in _TABLES)}"))
        counters.recount_all(self._connection)
        feed.append_everything(self._connection)

    def _add(self, table: sa.Table, rows: list[dict[str, object]]) -> None:
        if rows:
            self._connection.execute(insert_if_absent(self._connection, table, key=["name"]), rows)

    def _ids_of(self, table: sa.Table) -> dict[str, int]:
        return dict(self._connection.execute(sa.select(table.c.name, table.c.id)).all())
