"""The contents of our own database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

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
from moorage.placement.store.inventories import FIELDS
from moorage.placement.store.names import is_custom
from moorage.placement.takeover import batches
from moorage.placement.takeover.records import (
    BATCH,
    Counts,
    NameTables,
    WholeAllocation,
    WholeConsumer,
    WholeInventory,
    WholeProvider,
)
from moorage.takeover.paging import pages


class OurContents:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def counts(self) -> Counts:
        names = self.names()
        return Counts(
            providers=self._count(providers),
            inventories=self._count(inventories),
            provider_traits=self._count(provider_traits),
            provider_aggregates=self._count(provider_aggregates),
            consumers=self._count(consumers),
            allocations=self._count(allocations),
            custom_classes=sum(map(is_custom, names.classes)),
            custom_traits=sum(map(is_custom, names.traits)),
        )

    def names(self) -> NameTables:
        known = sa.select(resource_classes.c.name, resource_classes.c.updated_at)
        named = sa.select(traits.c.name, traits.c.created_at)
        types = sa.select(consumer_types.c.name).order_by(consumer_types.c.name)
        return NameTables(
            dict(self._connection.execute(known).all()),
            dict(self._connection.execute(named).all()),
            list(self._connection.execute(types).scalars()),
        )

    def provider_uuids(self) -> list[str]:
        return list(self._uuids.values())

    def providers(self) -> Iterator[list[WholeProvider]]:
        table = providers
        query: sa.Select[Any] = sa.select(
            *(table.c.id, table.c.uuid, table.c.name, table.c.generation, table.c.parent_id, table.c.root_id),
            table.c.updated_at,
        )
        for rows in pages(self._connection, query, table.c.id, BATCH):
            first, last = rows[0].id, rows[-1].id
            offered = self._inventories(first, last)
            named = self._traits_of(first, last)
            members = self._aggregates_of(first, last)
            yield [
                WholeProvider(
                    uuid,
                    name,
                    generation,
                    self._uuids[parent] if parent is not None else None,
                    self._uuids[root],
                    sorted(offered[number]),
                    sorted(named[number]),
                    sorted(members[number]),
                    changed_at,
                )
                for number, uuid, name, generation, parent, root, changed_at in rows
            ]

    def consumers(self) -> Iterator[list[WholeConsumer]]:
        query: sa.Select[Any] = (
            sa.select(
                *(consumers.c.id, consumers.c.uuid, consumers.c.project_id, consumers.c.user_id),
                *(consumers.c.generation, consumer_types.c.name),
                *(allocations.c.provider_id, allocations.c.class_id, allocations.c.used),
                allocations.c.created_at,
            )
            .join_from(consumers, allocations, allocations.c.consumer_id == consumers.c.id)
            .outerjoin(consumer_types, consumers.c.type_id == consumer_types.c.id)
            .order_by(consumers.c.id)
        )
        uuids, classes = self._uuids, self._classes
        rows = self._connection.execute(query.execution_options(yield_per=BATCH))
        return batches.consumers(
            (
                number,
                WholeConsumer(uuid, project, user, generation, kind, []),
                WholeAllocation(uuids[provider], classes[name], used, created_at),
            )
            for number, uuid, project, user, generation, kind, provider, name, used, created_at in rows
        )

    def _inventories(self, first: int, last: int) -> dict[int, list[WholeInventory]]:
        table = inventories
        query = sa.select(
            table.c.provider_id, table.c.class_id, *(table.c[name] for name in FIELDS), table.c.updated_at
        ).where(table.c.provider_id.between(first, last))
        found: dict[int, list[WholeInventory]] = defaultdict(list)
        for provider, name, *values in self._connection.execute(query):
            found[provider].append(WholeInventory(self._classes[name], *values))
        return found

    def _traits_of(self, first: int, last: int) -> dict[int, list[str]]:
        owner = provider_traits.c.provider_id
        query = sa.select(owner, provider_traits.c.trait_id).where(owner.between(first, last))
        found: dict[int, list[str]] = defaultdict(list)
        for provider, trait in self._connection.execute(query):
            found[provider].append(self._traits[trait])
        return found

    def _aggregates_of(self, first: int, last: int) -> dict[int, list[str]]:
        owner = provider_aggregates.c.provider_id
        query = sa.select(owner, provider_aggregates.c.aggregate_uuid).where(owner.between(first, last))
        found: dict[int, list[str]] = defaultdict(list)
        for provider, aggregate in self._connection.execute(query):
            found[provider].append(aggregate)
        return found

    @cached_property
    def _uuids(self) -> dict[int, str]:
        """In the order of their ids, so that parents mostly come before their children."""
        query = sa.select(providers.c.id, providers.c.uuid).order_by(providers.c.id)
        return dict(self._connection.execute(query).all())

    @cached_property
    def _classes(self) -> dict[int, str]:
        query = sa.select(resource_classes.c.id, resource_classes.c.name)
        return dict(self._connection.execute(query).all())

    @cached_property
    def _traits(self) -> dict[int, str]:
        return dict(self._connection.execute(sa.select(traits.c.id, traits.c.name)).all())

    def _count(self, table: sa.Table) -> int:
        return self._connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
