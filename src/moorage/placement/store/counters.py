"""The counters of inventories, held against the allocations that they stand for."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.tables.placement import allocations, inventories, providers, resource_classes
from moorage.placement.feed import ChangeKind
from moorage.placement.store import providers as provider_store


class WrongCounter(NamedTuple):
    provider_uuid: str
    resource_class: str
    counted: int
    allocated: int


_SUM = (
    sa.select(sa.func.coalesce(sa.func.sum(allocations.c.used), 0))
    .where(
        allocations.c.provider_id == inventories.c.provider_id,
        allocations.c.class_id == inventories.c.class_id,
    )
    .correlate(inventories)
    .scalar_subquery()
)


def wrong(connection: Connection, provider_uuid: str | None = None) -> list[WrongCounter]:
    """In one statement, which sees both sides of each claim or neither."""
    query = (
        sa.select(providers.c.uuid, resource_classes.c.name, inventories.c.used, _SUM)
        .join_from(inventories, providers, inventories.c.provider_id == providers.c.id)
        .join(resource_classes, inventories.c.class_id == resource_classes.c.id)
        .where(inventories.c.used != _SUM)
        .order_by(providers.c.uuid, resource_classes.c.name)
    )
    if provider_uuid is not None:
        query = query.where(providers.c.uuid == provider_uuid)
    return [
        WrongCounter(uuid, name, counted, int(summed))
        for uuid, name, counted, summed in connection.execute(query)
    ]


def recount(connection: Connection, provider_uuid: str) -> None:
    """Under the provider's lock, which claims take, too."""
    provider = provider_store.lock(connection, provider_uuid)
    counted = sa.update(inventories).where(
        inventories.c.provider_id == provider.id, inventories.c.used != _SUM
    )
    if connection.execute(counted.values(used=_SUM)).rowcount:
        provider_store.touched(connection, provider, kind=ChangeKind.USAGE)


def recount_all(connection: Connection) -> None:
    """For who has written all allocations at once, and keeps everybody else out until the feed says so."""
    counted = sa.update(inventories).where(inventories.c.used != _SUM)
    connection.execute(counted.values(used=_SUM, updated_at=inventories.c.updated_at))
