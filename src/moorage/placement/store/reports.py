"""Writing a report: rows are gathered for all its providers, then written in a few bulk statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db import bulk
from moorage.db.among import among
from moorage.db.tables.placement import inventories, provider_aggregates, provider_traits, providers
from moorage.placement import feed
from moorage.placement.errors import (
    ClassNotFound,
    InventoryInUse,
    ParentRefused,
    ProviderExists,
    TraitNotFound,
)
from moorage.placement.fleet.record import ProviderRecord
from moorage.placement.report import InventoryReport, ProviderReport
from moorage.placement.store import names, snapshot
from moorage.placement.store import providers as provider_store
from moorage.placement.store.inventories import FIELDS
from moorage.placement.store.writable_trees import ANY_TREE, WritableTrees

_FIRST_GENERATION = 1
_PROVIDER_COLUMNS = ("id", "uuid", "name", "generation", "parent_id", "root_id", "updated_at")
_INVENTORY_COLUMNS = ("provider_id", "class_id", *FIELDS, "used", "updated_at")


@dataclass(slots=True)
class ReportOutcome:
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    generations: dict[str, int] = field(default_factory=dict)
    """Of the providers that were made or changed, by UUID."""


def write(
    connection: Connection, reports: Sequence[ProviderReport], trees: WritableTrees = ANY_TREE
) -> ReportOutcome:
    """Make every one of `reports` true, or raise and change nothing."""
    existing = _lock(connection, [report.uuid for report in reports])
    trees.admit(connection, {record.root_id for record in existing.values()})
    new = [report for report in reports if report.uuid not in existing]
    created = _create(connection, new)
    trees.keep(connection, [created[report.uuid] for report in new if _parent(report) is None])
    catalogue = _Catalogue(connection, reports)
    rows = _Rows()
    outcome = ReportOutcome(created=len(new))
    for report in new:
        rows.fill(created[report.uuid], report, catalogue)
        outcome.generations[report.uuid] = _FIRST_GENERATION
    changed = [
        report
        for report in reports
        if report.uuid in existing and rows.change(connection, existing[report.uuid], report, catalogue)
    ]
    rows.write(connection)
    changed_ids = [existing[report.uuid].id for report in changed]
    _count_generations(connection, changed_ids)
    feed.append(connection, feed.ChangeKind.PROVIDER, [*created.values(), *changed_ids])
    for report in changed:
        outcome.generations[report.uuid] = existing[report.uuid].generation + 1
    trees.admit_providers(connection, [report.uuid for report in reports])  # which may have moved
    outcome.updated = len(changed)
    outcome.unchanged = len(existing) - len(changed)
    return outcome


def _lock(connection: Connection, uuids: Sequence[str]) -> dict[str, ProviderRecord]:
    query = (
        sa.select(providers.c.id).where(among(connection, providers.c.uuid, uuids)).order_by(providers.c.id)
    )
    ids = list(connection.execute(query.with_for_update()).scalars())
    return {record.uuid: record for record in snapshot.read_providers(connection, ids)}


def _create(connection: Connection, new: Sequence[ProviderReport]) -> dict[str, int]:
    """Insert the providers that do not exist, parents before children; their ids by UUID."""
    _refuse_names(connection, new)
    waiting = {report.uuid: report for report in new}
    made: dict[str, int] = {}
    roots: dict[str, tuple[int, int]] = _outside_parents(connection, new)
    while waiting:
        ready = [report for report in waiting.values() if _parent(report) is None or _parent(report) in roots]
        if not ready:
            raise ParentRefused(f"parent provider of {next(iter(waiting))} does not exist or makes a loop.")
        lineage = [
            roots[parent] if (parent := _parent(report)) is not None else (None, 0) for report in ready
        ]
        ids = bulk.numbers(connection, providers, len(ready))
        now = utcnow()
        rows = [
            (new_id, report.uuid, report.name, _FIRST_GENERATION, parent_id, root_id or new_id, now)
            for new_id, report, (parent_id, root_id) in zip(ids, ready, lineage, strict=True)
        ]
        bulk.insert(connection, providers, _PROVIDER_COLUMNS, rows)
        for report, new_id, (_, root_id) in zip(ready, ids, lineage, strict=True):
            made[report.uuid] = new_id
            roots[report.uuid] = (new_id, root_id or new_id)
            del waiting[report.uuid]
    return made


def _parent(report: ProviderReport) -> str | None:
    return report.parent_provider_uuid if isinstance(report.parent_provider_uuid, str) else None


def _outside_parents(connection: Connection, new: Sequence[ProviderReport]) -> dict[str, tuple[int, int]]:
    """Parents that are there already: (id, root id) by UUID, locked so that they stay."""
    wanted = {parent for report in new if (parent := _parent(report)) is not None}
    query = sa.select(providers.c.uuid, providers.c.id, providers.c.root_id).where(
        among(connection, providers.c.uuid, wanted)
    )
    rows = connection.execute(query.order_by(providers.c.id).with_for_update()) if wanted else ()
    return {uuid: (provider_id, root_id) for uuid, provider_id, root_id in rows}


def _refuse_names(connection: Connection, new: Sequence[ProviderReport]) -> None:
    wanted = [report.name for report in new]
    query = sa.select(providers.c.name).where(among(connection, providers.c.name, wanted))
    taken = set(connection.execute(query).scalars()) if wanted else set()
    seen: set[str] = set()
    for name in wanted:
        if name in taken or name in seen:
            raise ProviderExists(f"Conflicting resource provider name: {name} already exists.")
        seen.add(name)


def _count_generations(connection: Connection, ids: Sequence[int]) -> None:
    if ids:
        connection.execute(
            sa.update(providers)
            .where(among(connection, providers.c.id, ids))
            .values(generation=providers.c.generation + 1, updated_at=utcnow())
        )


class _Catalogue:
    """Ids of the names that a report uses; custom names that do not exist yet are made."""

    def __init__(self, connection: Connection, reports: Iterable[ProviderReport]) -> None:
        classes = {name for report in reports for name in report.inventories or ()}
        traits = {name for report in reports for name in (*(report.traits or ()), *(report.add_traits or ()))}
        removed = {name for report in reports for name in report.remove_traits or ()}
        _ensure(connection, classes, set(names.all_class_ids(connection)), names.ensure_class)
        _ensure(connection, traits, set(names.trait_ids(connection, traits)), names.ensure_trait)
        self.class_ids = names.all_class_ids(connection)
        self.class_names = {class_id: name for name, class_id in self.class_ids.items()}
        self.trait_ids = names.trait_ids(connection, traits | removed)
        for name in classes - self.class_ids.keys():
            raise ClassNotFound(name)


def _ensure(
    connection: Connection, wanted: set[str], known: set[str], ensure: Callable[[Connection, str], bool]
) -> None:
    for name in sorted(wanted - known):
        if names.is_custom(name):
            ensure(connection, name)


class _Rows:
    """What has to be inserted, updated and deleted so that the reports come true."""

    def __init__(self) -> None:
        self._new: dict[sa.Table, list[tuple[Any, ...]]] = {
            inventories: [],
            provider_traits: [],
            provider_aggregates: [],
        }
        self._updated: list[dict[str, Any]] = []
        self._gone: dict[sa.Table, list[tuple[int, Any]]] = {table: [] for table in self._new}

    def fill(self, provider_id: int, report: ProviderReport, catalogue: _Catalogue) -> None:
        """A provider that is new."""
        for name, inventory in (report.inventories or {}).items():
            self._new[inventories].append(_inventory(provider_id, catalogue.class_ids[name], inventory))
        self._add(provider_traits, provider_id, _wanted_traits(set(), report, catalogue))
        self._add(provider_aggregates, provider_id, set(report.aggregates or ()))

    def change(
        self, connection: Connection, record: ProviderRecord, report: ProviderReport, catalogue: _Catalogue
    ) -> bool:
        """A provider that exists; False if it is already as reported."""
        changed = _may_move(record, report) and _move(connection, report)
        if report.inventories is not None:
            changed |= self._change_inventories(record, report.inventories, catalogue)
        held = set(record.trait_ids)
        changed |= self._swap(provider_traits, record.id, held, _wanted_traits(held, report, catalogue))
        if report.aggregates is not None:
            changed |= self._swap(
                provider_aggregates, record.id, set(record.aggregates), set(report.aggregates)
            )
        return changed

    def _change_inventories(
        self, record: ProviderRecord, wanted: Mapping[str, InventoryReport], catalogue: _Catalogue
    ) -> bool:
        held = {inventory.class_id: inventory for inventory in record.inventories}
        by_id = {catalogue.class_ids[name]: inventory for name, inventory in wanted.items()}
        for class_id in held.keys() - by_id.keys():
            if held[class_id].used:
                raise InventoryInUse(catalogue.class_names[class_id], record.uuid)
            self._gone[inventories].append((record.id, class_id))
        for class_id in by_id.keys() - held.keys():
            self._new[inventories].append(_inventory(record.id, class_id, by_id[class_id]))
        differing = [
            class_id
            for class_id in held.keys() & by_id.keys()
            if held[class_id][1:7] != by_id[class_id].as_tuple()
        ]
        for class_id in differing:
            values = zip(FIELDS, by_id[class_id].as_tuple(), strict=True)
            self._updated.append(
                {**dict(values), "updated_at": utcnow(), "of_provider": record.id, "of_class": class_id}
            )
        return bool(differing) or held.keys() != by_id.keys()

    def _swap(self, table: sa.Table, provider_id: int, held: set[Any], wanted: set[Any]) -> bool:
        self._gone[table] += [(provider_id, value) for value in held - wanted]
        self._add(table, provider_id, wanted - held)
        return held != wanted

    def _add(self, table: sa.Table, provider_id: int, values: set[Any]) -> None:
        self._new[table] += [(provider_id, value) for value in values]

    def write(self, connection: Connection) -> None:
        for table, pairs in self._gone.items():
            if pairs:
                condition = (table.c.provider_id == sa.bindparam("of")) & (
                    _value_column(table) == sa.bindparam("value")
                )
                keys = [{"of": provider_id, "value": value} for provider_id, value in pairs]
                connection.execute(sa.delete(table).where(condition), keys)
        if self._updated:
            connection.execute(_UPDATE_INVENTORY, self._updated)
        for table, rows in self._new.items():
            columns = (
                _INVENTORY_COLUMNS if table is inventories else ("provider_id", _value_column(table).name)
            )
            bulk.insert(connection, table, columns, rows)


_UPDATE_INVENTORY = (
    sa.update(inventories)
    .where(
        inventories.c.provider_id == sa.bindparam("of_provider"),
        inventories.c.class_id == sa.bindparam("of_class"),
    )
    .values({name: sa.bindparam(name) for name in (*FIELDS, "updated_at")})
)


def _may_move(record: ProviderRecord, report: ProviderReport) -> bool:
    return record.name != report.name or record.parent_id is not None or _parent(report) is not None


def _move(connection: Connection, report: ProviderReport) -> bool:
    """Rename or re-parent; rare, so one by one."""
    provider = provider_store.find(connection, report.uuid)
    renamed = provider.name != report.name
    provider_store.rename(connection, provider, report.name)
    if report.parent_provider_uuid is msgspec.UNSET or report.parent_provider_uuid == provider.parent_uuid:
        return renamed
    provider_store.set_parent(connection, provider, _parent(report), reparenting=True)
    return True


def _inventory(provider_id: int, class_id: int, report: InventoryReport) -> tuple[Any, ...]:
    return (provider_id, class_id, *report.as_tuple(), 0, utcnow())


def _wanted_traits(held: set[int], report: ProviderReport, catalogue: _Catalogue) -> set[int]:
    """What a provider that has `held` shall have."""
    if report.traits is not None:
        return _trait_ids(report.traits, catalogue)
    removed = {catalogue.trait_ids.get(name) for name in report.remove_traits or ()}
    return (held - removed) | _trait_ids(report.add_traits or (), catalogue)


def _trait_ids(wanted: Iterable[str], catalogue: _Catalogue) -> set[int]:
    missing = sorted(set(wanted) - catalogue.trait_ids.keys())
    if missing:
        raise TraitNotFound(", ".join(missing))
    return {catalogue.trait_ids[name] for name in wanted}


def _value_column(table: sa.Table) -> sa.Column[Any]:
    """What a row of `table` says of its provider: the second half of its key."""
    return list(table.primary_key.columns)[1]
