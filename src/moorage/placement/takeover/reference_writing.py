"""Whole records into a database of the reference, which has its schema and no providers and consumers yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import os_resource_classes
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db import bulk
from moorage.placement.store.inventories import FIELDS
from moorage.placement.store.names import is_custom
from moorage.placement.takeover import reference_tables as theirs
from moorage.placement.takeover.records import NameTables, WholeConsumer, WholeProvider

_FIRST_CUSTOM_CLASS = 10_000
"""Below are the standard classes, by their place in the published list."""
_ZERO_IS_A_NUMBER = "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')"
"""That of the class VCPU, for which MariaDB would else give the next one that is free."""
_STAMPS = ("created_at", "updated_at")


class ReferenceWriting:
    """In one transaction. Ids are given as the reference would give them itself."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._now = _naive(utcnow())
        self._classes: dict[str, int] = {}
        self._traits: dict[str, int] = {}
        self._aggregates: dict[str, int] = {}
        self._types: dict[str, int] = {}
        self._projects: dict[str, int] = {}
        self._users: dict[str, int] = {}
        self._ids: dict[str, int] = {}
        """Of providers."""
        self._written: set[str] = set()
        self._parents: list[tuple[int, int, int]] = []
        """Of providers that came before their parents or roots: provider, parent, root."""

    def begin(self, known: NameTables, provider_uuids: Sequence[str]) -> None:
        if self._connection.dialect.name == "mysql":
            self._connection.execute(sa.text(_ZERO_IS_A_NUMBER))
        self._classes = self._named(theirs.classes.c.name)
        self._add_classes(known.classes)
        custom = {name: at for name, at in known.traits.items() if is_custom(name)}
        self._traits = self._with(theirs.traits.c.name, self._named(theirs.traits.c.name), custom)
        self._types = self._with(
            theirs.consumer_types.c.name, self._named(theirs.consumer_types.c.name), known.types
        )
        self._projects = self._named(theirs.projects.c.external_id)
        self._users = self._named(theirs.users.c.external_id)
        self._aggregates = self._named(theirs.aggregates.c.uuid)
        highest = sa.select(sa.func.coalesce(sa.func.max(theirs.providers.c.id), 0))
        first = self._connection.execute(highest).scalar_one() + 1
        self._ids = {uuid: number for number, uuid in enumerate(provider_uuids, start=first)}

    def add_providers(self, batch: Sequence[WholeProvider]) -> None:
        self._traits = self._with(theirs.traits.c.name, self._traits, _each(one.traits for one in batch))
        groups = _each(one.aggregates for one in batch)
        self._aggregates = self._with(theirs.aggregates.c.uuid, self._aggregates, groups)
        columns = ("id", "uuid", "name", "generation", "parent_provider_id", "root_provider_id", *_STAMPS)
        bulk.insert(self._connection, theirs.providers, columns, [self._row(one) for one in batch])
        self._add_belongings(batch)

    def _row(self, one: WholeProvider) -> tuple[object, ...]:
        """Parents have to be there first; roots likewise, but a provider may be its own."""
        number, changed_at = self._ids[one.uuid], _naive(one.changed_at)
        self._written.add(one.uuid)
        parent = None if one.parent is None else self._ids[one.parent]
        root = self._ids[one.root]
        if parent is not None and not {one.parent, one.root} <= self._written:
            self._parents.append((number, parent, root))
            parent, root = None, number
        return (number, one.uuid, one.name, one.generation, parent, root, changed_at, changed_at)

    def _add_belongings(self, batch: Sequence[WholeProvider]) -> None:
        bulk.insert(
            self._connection,
            theirs.inventories,
            ("resource_provider_id", "resource_class_id", *FIELDS, *_STAMPS),
            [
                (
                    *(self._ids[one.uuid], self._classes[name], *values),
                    *(_naive(changed_at), _naive(changed_at)),
                )
                for one in batch
                for name, *values, changed_at in one.inventories
            ],
        )
        bulk.insert(
            self._connection,
            theirs.provider_traits,
            ("resource_provider_id", "trait_id", *_STAMPS),
            [
                (self._ids[one.uuid], self._traits[trait], self._now, None)
                for one in batch
                for trait in one.traits
            ],
        )
        bulk.insert(
            self._connection,
            theirs.provider_aggregates,
            ("resource_provider_id", "aggregate_id", *_STAMPS),
            [
                (self._ids[one.uuid], self._aggregates[uuid], self._now, None)
                for one in batch
                for uuid in one.aggregates
            ],
        )

    def add_consumers(self, batch: Sequence[WholeConsumer]) -> None:
        projects, users = theirs.projects.c.external_id, theirs.users.c.external_id
        self._projects = self._with(projects, self._projects, {one.project_id for one in batch})
        self._users = self._with(users, self._users, {one.user_id for one in batch})
        columns = ("uuid", "project_id", "user_id", "generation", "consumer_type_id", *_STAMPS)
        rows = [
            (
                *(one.uuid, self._projects[one.project_id], self._users[one.user_id], one.generation),
                *(None if one.type is None else self._types[one.type], self._now, None),
            )
            for one in batch
        ]
        bulk.insert(self._connection, theirs.consumers, columns, rows)
        bulk.insert(
            self._connection,
            theirs.allocations,
            ("consumer_id", "resource_provider_id", "resource_class_id", "used", *_STAMPS),
            [
                (
                    *(one.uuid, self._ids[held.provider], self._classes[held.resource_class], held.used),
                    *(_naive(held.changed_at), None),
                )
                for one in batch
                for held in one.allocations
            ],
        )

    def finish(self) -> None:
        for number, parent, root in self._parents:
            self._connection.execute(
                sa.update(theirs.providers)
                .where(theirs.providers.c.id == number)
                .values(parent_provider_id=parent, root_provider_id=root)
            )
        if self._connection.dialect.name == "postgresql":  # elsewhere the next number follows the highest
            for table in (theirs.providers, theirs.classes):
                highest = sa.select(sa.func.coalesce(sa.func.max(table.c.id), 1)).scalar_subquery()
                sequence = sa.func.pg_get_serial_sequence(table.name, "id")
                self._connection.execute(sa.select(sa.func.setval(sequence, highest)))

    def _add_classes(self, known: Mapping[str, datetime]) -> None:
        """A standard class has its number; custom ones are numbered as they come."""
        free = max([_FIRST_CUSTOM_CLASS - 1, *self._classes.values()]) + 1
        missing = [name for name in known if name not in self._classes]
        standard = {name: number for number, name in enumerate(os_resource_classes.STANDARDS)}
        numbers = {name: standard[name] for name in missing if name in standard}
        numbers |= dict(
            zip((name for name in missing if name not in standard), range(free, 2**31), strict=False)
        )
        rows = [(number, name, _naive(known[name]), None) for name, number in numbers.items()]
        bulk.insert(self._connection, theirs.classes, ("id", "name", *_STAMPS), rows)
        self._classes |= numbers

    def _with(self, column: sa.Column[str], known: dict[str, int], wanted: Iterable[str]) -> dict[str, int]:
        """The ids of all names, with those made that were not there."""
        missing = sorted(set(wanted) - known.keys())
        if not missing:
            return known
        rows = [(name, self._now, None) for name in missing]
        table = column.table
        assert isinstance(table, sa.Table)
        bulk.insert(self._connection, table, (column.name, *_STAMPS), rows)
        return self._named(column)

    def _named(self, column: sa.Column[str]) -> dict[str, int]:
        return dict(self._connection.execute(sa.select(column, column.table.c.id)).all())


def _each(lists: Iterable[Iterable[str]]) -> set[str]:
    return {name for names in lists for name in names}


def _naive(at: datetime) -> datetime:
    """The reference keeps UTC without saying so, and MariaDB whole seconds: it would round up."""
    return at.astimezone(UTC).replace(tzinfo=None, microsecond=0)
