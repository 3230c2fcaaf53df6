"""The contents of the reference's database.

What refers to something that does not exist is left out here; `reference_checks` says of what there is any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.placement.store.inventories import FIELDS
from moorage.placement.store.names import is_custom
from moorage.placement.takeover import batches
from moorage.placement.takeover import reference_tables as theirs
from moorage.placement.takeover.records import (
    BATCH,
    Counts,
    NameTables,
    WholeAllocation,
    WholeConsumer,
    WholeInventory,
    WholeProvider,
    moment,
)
from moorage.takeover.paging import pages


class ReferenceContents:
    def __init__(self, connection: Connection, revision: str) -> None:
        self._connection = connection
        self._typed = revision != theirs.UNTYPED

    def counts(self) -> Counts:
        names = self.names()
        held = sa.exists().where(theirs.allocations.c.consumer_id == theirs.consumers.c.uuid)
        return Counts(
            providers=self._count(theirs.providers),
            inventories=self._count(theirs.inventories),
            provider_traits=self._count(theirs.provider_traits),
            provider_aggregates=self._count(theirs.provider_aggregates),
            consumers=self._count(theirs.consumers, held),
            allocations=self._count(theirs.allocations),
            custom_classes=sum(map(is_custom, names.classes)),
            custom_traits=sum(map(is_custom, names.traits)),
        )

    def names(self) -> NameTables:
        types = self._types.values() if self._typed else ()
        return NameTables(self._stamped(theirs.classes), self._stamped(theirs.traits), sorted(types))

    def provider_uuids(self) -> list[str]:
        return list(self._uuids.values())

    def providers(self) -> Iterator[list[WholeProvider]]:
        table = theirs.providers
        query = sa.select(
            *(table.c.id, table.c.uuid, table.c.name, table.c.generation, table.c.parent_provider_id),
            *(table.c.root_provider_id, table.c.updated_at, table.c.created_at),
        )
        for rows in pages(self._connection, query, table.c.id, BATCH):
            first, last = rows[0].id, rows[-1].id
            inventories = self._inventories(first, last)
            traits = self._pairs(theirs.provider_traits, "trait_id", self._traits, first, last)
            members = self._pairs(theirs.provider_aggregates, "aggregate_id", self._aggregates, first, last)
            yield [
                WholeProvider(
                    uuid,
                    name,
                    generation,
                    self._uuids[parent] if parent is not None else None,
                    self._uuids[root],
                    sorted(inventories[number]),
                    sorted(traits[number]),
                    sorted(members[number]),
                    moment(updated_at, created_at),
                )
                for number, uuid, name, generation, parent, root, updated_at, created_at in rows
            ]

    def consumers(self) -> Iterator[list[WholeConsumer]]:
        """Both tables are read in one statement that is never held whole: a pass over either for each batch
        would be the database's choice, where it has not yet counted what there is."""
        table, held = theirs.consumers, theirs.allocations
        columns = [table.c.uuid, table.c.generation, table.c.project_id, table.c.user_id]
        type_id = table.c.consumer_type_id if self._typed else sa.null()
        query = (
            sa.select(
                *(table.c.id, *columns, type_id, held.c.resource_provider_id, held.c.resource_class_id),
                *(held.c.used, held.c.updated_at, held.c.created_at),
            )
            .join_from(table, held, held.c.consumer_id == table.c.uuid)
            .order_by(table.c.id)
        )
        uuids, classes, types = self._uuids, self._classes, self._types if self._typed else {}
        projects, users = self._externals(theirs.projects), self._externals(theirs.users)
        rows = self._connection.execute(query.execution_options(yield_per=BATCH))

        def known() -> Iterator[batches.Held]:
            for number, uuid, generation, project, user, kind, provider, name, used, *moments in rows:
                if provider in uuids and name in classes:
                    holder = WholeConsumer(
                        uuid, projects[project], users[user], generation, types.get(kind), []
                    )
                    yield (
                        number,
                        holder,
                        WholeAllocation(uuids[provider], classes[name], used, moment(*moments)),
                    )

        return batches.consumers(known())

    def _inventories(self, first: int, last: int) -> dict[int, list[WholeInventory]]:
        table = theirs.inventories
        query = sa.select(
            *(table.c.resource_provider_id, table.c.resource_class_id, *(table.c[name] for name in FIELDS)),
            *(table.c.updated_at, table.c.created_at),
        ).where(table.c.resource_provider_id.between(first, last))
        found: dict[int, list[WholeInventory]] = defaultdict(list)
        for provider, name, total, reserved, low, high, step, ratio, *moments in self._connection.execute(
            query
        ):
            if name in self._classes:
                found[provider].append(
                    WholeInventory(
                        self._classes[name], total, reserved, low, high, step, ratio, moment(*moments)
                    )
                )
        return found

    def _pairs(
        self, table: sa.Table, column: str, names: dict[int, str], first: int, last: int
    ) -> dict[int, list[str]]:
        owner = table.c.resource_provider_id
        query = sa.select(owner, table.c[column]).where(owner.between(first, last))
        found: dict[int, list[str]] = defaultdict(list)
        for provider, number in self._connection.execute(query):
            if number in names:
                found[provider].append(names[number])
        return found

    @cached_property
    def _uuids(self) -> dict[int, str]:
        return self._by_id(theirs.providers.c.uuid)

    @cached_property
    def _classes(self) -> dict[int, str]:
        return self._by_id(theirs.classes.c.name)

    @cached_property
    def _traits(self) -> dict[int, str]:
        return self._by_id(theirs.traits.c.name)

    @cached_property
    def _aggregates(self) -> dict[int, str]:
        return self._by_id(theirs.aggregates.c.uuid)

    @cached_property
    def _types(self) -> dict[int, str]:
        return self._by_id(theirs.consumer_types.c.name)

    def _externals(self, table: sa.Table) -> dict[int, str]:
        return self._by_id(table.c.external_id)

    def _by_id(self, column: sa.Column[Any]) -> dict[int, str]:
        """In the order of the ids, so that parents mostly come before their children."""
        number = column.table.c.id
        return dict(self._connection.execute(sa.select(number, column).order_by(number)).all())

    def _stamped(self, table: sa.Table) -> dict[str, datetime]:
        rows = self._connection.execute(sa.select(table.c.name, table.c.updated_at, table.c.created_at))
        return {name: moment(updated_at, created_at) for name, updated_at, created_at in rows}

    def _count(self, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
        return self._connection.execute(
            sa.select(sa.func.count()).select_from(table).where(*conditions)
        ).scalar_one()
