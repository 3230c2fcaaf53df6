"""Reading allocations and usages; only `placement/claims.py` writes them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.among import among
from moorage.db.tables.placement import (
    allocations,
    consumer_types,
    consumers,
    inventories,
    providers,
    resource_classes,
)

UNKNOWN_TYPE = "unknown"
ALL_TYPES = "all"


@dataclass(frozen=True, slots=True)
class Consumer:
    uuid: str
    project_id: str
    user_id: str
    generation: int
    type_name: str


@dataclass(frozen=True, slots=True)
class Allocation:
    consumer_uuid: str
    consumer_generation: int
    provider_uuid: str
    provider_generation: int
    class_name: str
    used: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class TypeUsage:
    """What the consumers of one type use together."""

    consumer_count: int
    resources: dict[str, int]


_SELECT = (
    sa.select(
        consumers.c.uuid,
        consumers.c.generation,
        providers.c.uuid,
        providers.c.generation,
        resource_classes.c.name,
        allocations.c.used,
        allocations.c.created_at,
    )
    .join_from(allocations, consumers, allocations.c.consumer_id == consumers.c.id)
    .join(providers, allocations.c.provider_id == providers.c.id)
    .join(resource_classes, allocations.c.class_id == resource_classes.c.id)
    .order_by(allocations.c.consumer_id, allocations.c.provider_id, allocations.c.class_id)
)


def of_consumer(connection: Connection, consumer_uuid: str) -> list[Allocation]:
    rows = connection.execute(_SELECT.where(consumers.c.uuid == consumer_uuid))
    return [Allocation(*row) for row in rows]


def of_provider(connection: Connection, provider_id: int) -> list[Allocation]:
    rows = connection.execute(_SELECT.where(allocations.c.provider_id == provider_id))
    return [Allocation(*row) for row in rows]


_CONSUMERS = sa.select(
    consumers.c.uuid,
    consumers.c.project_id,
    consumers.c.user_id,
    consumers.c.generation,
    sa.func.coalesce(consumer_types.c.name, UNKNOWN_TYPE),
).outerjoin_from(consumers, consumer_types, consumers.c.type_id == consumer_types.c.id)


def consumer(connection: Connection, consumer_uuid: str) -> Consumer | None:
    row = connection.execute(_CONSUMERS.where(consumers.c.uuid == consumer_uuid)).one_or_none()
    return None if row is None else Consumer(*row)


def consumers_of(connection: Connection, provider_uuids: Collection[str]) -> list[Consumer]:
    """Who holds anything of these providers."""
    holding = (
        sa.select(allocations.c.consumer_id)
        .join_from(allocations, providers, allocations.c.provider_id == providers.c.id)
        .where(among(connection, providers.c.uuid, provider_uuids))
    )
    query = _CONSUMERS.where(consumers.c.id.in_(holding)).order_by(consumers.c.id)
    return [Consumer(*row) for row in connection.execute(query)]


def usage_of_provider(connection: Connection, provider_id: int) -> dict[str, int]:
    query = (
        sa.select(resource_classes.c.name, inventories.c.used)
        .join_from(inventories, resource_classes, inventories.c.class_id == resource_classes.c.id)
        .where(inventories.c.provider_id == provider_id)
        .order_by(inventories.c.class_id)
    )
    return dict(connection.execute(query).all())


def usage_of_project(connection: Connection, project_id: str, user_id: str | None) -> dict[str, int]:
    query = (
        sa.select(resource_classes.c.name, sa.func.sum(allocations.c.used))
        .join_from(allocations, consumers, allocations.c.consumer_id == consumers.c.id)
        .join(resource_classes, allocations.c.class_id == resource_classes.c.id)
        .where(*_owned_by(project_id, user_id))
        .group_by(resource_classes.c.name)
    )
    return {name: int(used) for name, used in connection.execute(query)}


def usage_by_type(
    connection: Connection, project_id: str, user_id: str | None, wanted: str | None
) -> dict[str, TypeUsage]:
    """Per consumer type, or all types in one if `wanted` is "all"."""
    type_name = sa.func.coalesce(consumer_types.c.name, UNKNOWN_TYPE)
    label = sa.literal(ALL_TYPES) if wanted == ALL_TYPES else type_name
    joined = (
        allocations.join(consumers, allocations.c.consumer_id == consumers.c.id)
        .join(resource_classes, allocations.c.class_id == resource_classes.c.id)
        .outerjoin(consumer_types, consumers.c.type_id == consumer_types.c.id)
    )
    conditions = _owned_by(project_id, user_id)
    if wanted not in (None, ALL_TYPES):
        conditions.append(type_name == wanted)
    counts = (
        sa.select(label, sa.func.count(sa.distinct(allocations.c.consumer_id)))
        .select_from(joined).where(*conditions).group_by(sa.text("1"))
    )  # fmt: skip
    amounts = (
        sa.select(label, resource_classes.c.name, sa.func.sum(allocations.c.used))
        .select_from(joined).where(*conditions).group_by(sa.text("1"), resource_classes.c.name)
    )  # fmt: skip
    usages = {name: TypeUsage(count, {}) for name, count in connection.execute(counts)}
    for name, class_name, used in connection.execute(amounts):
        usages[name].resources[class_name] = int(used)
    return usages


def _owned_by(project_id: str, user_id: str | None) -> list[sa.ColumnElement[bool]]:
    conditions = [consumers.c.project_id == project_id]
    if user_id:
        conditions.append(consumers.c.user_id == user_id)
    return conditions
