"""The aggregates of many providers at once, for those who keep the groups of a whole fleet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db import bulk
from moorage.db.among import among
from moorage.db.tables.placement import provider_aggregates, providers
from moorage.placement import feed
from moorage.placement.errors import PlacementError, ProviderGenerationConflict, ProviderNotFound
from moorage.placement.store.writable_trees import ANY_TREE, WritableTrees


class Membership(NamedTuple):
    """The aggregates of a provider at one generation of it."""

    generation: int
    aggregates: frozenset[str]


def members(connection: Connection, aggregate_uuids: Collection[str]) -> dict[str, list[str]]:
    """The providers in each of these aggregates."""
    query = (
        sa.select(provider_aggregates.c.aggregate_uuid, providers.c.uuid)
        .join_from(provider_aggregates, providers)
        .where(among(connection, provider_aggregates.c.aggregate_uuid, aggregate_uuids))
    )
    found: dict[str, list[str]] = {uuid: [] for uuid in aggregate_uuids}
    for aggregate_uuid, provider_uuid in connection.execute(query):
        found[aggregate_uuid].append(provider_uuid)
    return found


def of_providers(connection: Connection, uuids: Collection[str]) -> dict[str, Membership]:
    """Of those that exist."""
    query = sa.select(providers.c.id, providers.c.uuid, providers.c.generation)
    rows = connection.execute(query.where(among(connection, providers.c.uuid, uuids))).all()
    held = _aggregates(connection, [row.id for row in rows])
    return {row.uuid: Membership(row.generation, frozenset(held.get(row.id, ()))) for row in rows}


def replace(
    connection: Connection, wanted: Mapping[str, Membership], trees: WritableTrees = ANY_TREE
) -> dict[str, PlacementError]:
    """Put providers into just these aggregates, each if it is still at the generation that is given.

    The answer is why some are as they were.
    """
    rows = _lock(connection, wanted)
    others = trees.refusals(connection, {row.root_id for row in rows.values()})
    held = _aggregates(connection, [row.id for row in rows.values()])
    refused: dict[str, PlacementError] = {}
    gone: list[tuple[int, str]] = []
    new: list[tuple[int, str]] = []
    changed: list[int] = []
    for uuid, (generation, aggregates) in wanted.items():
        row = rows.get(uuid)
        if row is None:
            refused[uuid] = ProviderNotFound(uuid)
        elif row.root_id in others:
            refused[uuid] = others[row.root_id]
        elif row.generation != generation:
            refused[uuid] = ProviderGenerationConflict()
        elif aggregates != held.get(row.id, set()):
            before = held.get(row.id, set())
            gone += [(row.id, aggregate) for aggregate in before - aggregates]
            new += [(row.id, aggregate) for aggregate in aggregates - before]
            changed.append(row.id)
    _write(connection, gone, new, changed)
    return refused


class _Row(NamedTuple):
    id: int
    generation: int
    root_id: int


def _lock(connection: Connection, uuids: Iterable[str]) -> dict[str, _Row]:
    query = (
        sa.select(providers.c.uuid, providers.c.id, providers.c.generation, providers.c.root_id)
        .where(among(connection, providers.c.uuid, list(uuids)))
        .order_by(providers.c.id)
        .with_for_update()
    )
    return {uuid: _Row(*row) for uuid, *row in connection.execute(query)}


def _aggregates(connection: Connection, provider_ids: Collection[int]) -> dict[int, set[str]]:
    table = provider_aggregates
    query = sa.select(table.c.provider_id, table.c.aggregate_uuid)
    found: dict[int, set[str]] = {}
    for provider_id, aggregate in connection.execute(
        query.where(among(connection, table.c.provider_id, provider_ids))
    ):
        found.setdefault(provider_id, set()).add(aggregate)
    return found


def _write(
    connection: Connection, gone: list[tuple[int, str]], new: list[tuple[int, str]], changed: list[int]
) -> None:
    table = provider_aggregates
    if gone:
        condition = (table.c.provider_id == sa.bindparam("of")) & (
            table.c.aggregate_uuid == sa.bindparam("aggregate")
        )
        pairs = [{"of": provider_id, "aggregate": aggregate} for provider_id, aggregate in gone]
        connection.execute(sa.delete(table).where(condition), pairs)
    bulk.insert(connection, table, ("provider_id", "aggregate_uuid"), new)
    if changed:
        connection.execute(
            sa.update(providers)
            .where(among(connection, providers.c.id, changed))
            .values(generation=providers.c.generation + 1, updated_at=utcnow())
        )
        feed.append(connection, feed.ChangeKind.PROVIDER, changed)
