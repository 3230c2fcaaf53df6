"""Reading providers whole, for the fleet: all of them at the start, the changed ones after that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.among import among, one_of
from moorage.db.tables.placement import (
    inventories,
    provider_aggregates,
    provider_traits,
    providers,
    resource_classes,
    traits,
)
from moorage.placement.fleet.names import Names
from moorage.placement.fleet.record import InventoryRecord, ProviderRecord, UsageRecord

S = TypeVar("S", bound=sa.Select[Any])

_INVENTORY_COLUMNS = (
    inventories.c.provider_id,
    inventories.c.class_id,
    inventories.c.total,
    inventories.c.reserved,
    inventories.c.min_unit,
    inventories.c.max_unit,
    inventories.c.step_size,
    inventories.c.allocation_ratio,
    inventories.c.used,
)


def read_names(connection: Connection, names: Names) -> None:
    classes = connection.execute(sa.select(resource_classes.c.id, resource_classes.c.name))
    names.set_classes(dict(classes.all()))
    known = connection.execute(sa.select(traits.c.id, traits.c.name))
    names.set_traits(dict(known.all()))


def read_providers(connection: Connection, ids: Collection[int] | None = None) -> Iterator[ProviderRecord]:
    """Those with these ids that (still) exist; all of them for None."""
    of = read_inventories(connection, ids)
    trait_ids = _pairs(connection, provider_traits.c.provider_id, provider_traits.c.trait_id, ids)
    aggregates = _pairs(
        connection, provider_aggregates.c.provider_id, provider_aggregates.c.aggregate_uuid, ids
    )
    query = sa.select(
        providers.c.id,
        providers.c.uuid,
        providers.c.name,
        providers.c.generation,
        providers.c.parent_id,
        providers.c.root_id,
        providers.c.updated_at,
    )
    rows = connection.execute(_narrowed(connection, query, providers.c.id, ids))
    for provider_id, uuid, name, generation, parent_id, root_id, updated_at in rows:
        yield ProviderRecord(
            provider_id,
            uuid,
            name,
            generation,
            parent_id,
            root_id,
            updated_at.timestamp(),
            tuple(of.get(provider_id, ())),
            trait_ids.get(provider_id, ()),
            aggregates.get(provider_id, ()),
        )


_USAGES = (
    sa.select(
        providers.c.id,
        providers.c.generation,
        providers.c.updated_at,
        inventories.c.class_id,
        inventories.c.used,
    )
    .outerjoin_from(providers, inventories, inventories.c.provider_id == providers.c.id)
    .where(one_of(providers.c.id, "ids"))
)


def read_usages(connection: Connection, ids: Collection[int]) -> list[UsageRecord]:
    found: dict[int, UsageRecord] = {}
    for provider_id, generation, updated_at, class_id, used in connection.execute(_USAGES, {"ids": ids}):
        usage = found.get(provider_id)
        if usage is None:
            usage = found[provider_id] = UsageRecord(provider_id, generation, updated_at.timestamp(), {})
        if class_id is not None:
            usage.used[class_id] = used
    return list(found.values())


def read_inventories(connection: Connection, ids: Collection[int] | None) -> dict[int, list[InventoryRecord]]:
    """By provider, in no order."""
    query = _narrowed(connection, sa.select(*_INVENTORY_COLUMNS), inventories.c.provider_id, ids)
    found: dict[int, list[InventoryRecord]] = defaultdict(list)
    for provider_id, *values in connection.execute(query):
        found[provider_id].append(InventoryRecord(*values))
    return found


def _pairs(
    connection: Connection, owner: sa.Column[int], value: sa.Column[Any], ids: Collection[int] | None
) -> dict[int, tuple[Any, ...]]:
    """What each provider has, sorted, equal tuples being one object: most nodes of a fleet are alike."""
    found: dict[int, list[Any]] = defaultdict(list)
    for provider_id, item in connection.execute(_narrowed(connection, sa.select(owner, value), owner, ids)):
        found[provider_id].append(item)
    shared: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    result = {}
    for provider_id, items in found.items():
        items.sort()
        key = tuple(items)
        result[provider_id] = shared.setdefault(key, key)
    return result


def _narrowed(connection: Connection, query: S, column: sa.Column[int], ids: Collection[int] | None) -> S:
    return query if ids is None else query.where(among(connection, column, ids))
