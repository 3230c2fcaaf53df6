"""The aggregates of a provider: bare UUIDs, which mean something only to those who gave them."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.order import by_character
from moorage.db.tables.placement import provider_aggregates
from moorage.placement import feed
from moorage.placement.store import providers
from moorage.placement.store.providers import Provider


def of_provider(connection: Connection, provider_id: int) -> list[str]:
    table = provider_aggregates
    query = (
        sa.select(table.c.aggregate_uuid)
        .where(table.c.provider_id == provider_id)
        .order_by(by_character(table.c.aggregate_uuid))
    )
    return list(connection.execute(query).scalars())


def replace(
    connection: Connection, provider: Provider, wanted: Collection[str], *, count_generation: bool
) -> None:
    """Below microversion 1.19 the generation has no part in this (`count_generation` is false)."""
    existing = set(of_provider(connection, provider.id))
    gone, new = existing - set(wanted), set(wanted) - existing
    if gone:
        connection.execute(
            sa.delete(provider_aggregates).where(
                provider_aggregates.c.provider_id == provider.id,
                provider_aggregates.c.aggregate_uuid.in_(gone),
            )
        )
    if new:
        rows = [{"provider_id": provider.id, "aggregate_uuid": uuid} for uuid in new]
        connection.execute(sa.insert(provider_aggregates), rows)
    if count_generation:
        providers.touched(connection, provider)
    elif gone or new:
        feed.append(connection, feed.ChangeKind.PROVIDER, [provider.id])
