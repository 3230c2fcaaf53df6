"""The traits of a provider."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.among import among
from moorage.db.order import by_character
from moorage.db.tables.placement import provider_traits, traits
from moorage.db.tables.placement import providers as table
from moorage.placement.store import names, providers
from moorage.placement.store.names import Name
from moorage.placement.store.providers import Provider


def of_provider(connection: Connection, provider_id: int) -> list[Name]:
    query = (
        sa.select(traits.c.id, traits.c.name, traits.c.created_at)
        .join_from(provider_traits, traits, provider_traits.c.trait_id == traits.c.id)
        .where(provider_traits.c.provider_id == provider_id)
        .order_by(by_character(traits.c.name))
    )
    return [Name(*row) for row in connection.execute(query)]


def mark(connection: Connection, uuids: Collection[str], name: str, *, present: bool) -> None:
    """Give providers one trait, or take it away; those that don't exist stay so."""
    trait = names.find_trait(connection, name)
    query = sa.select(table.c.uuid).where(among(connection, table.c.uuid, uuids)).order_by(table.c.id)
    for uuid in connection.execute(query).scalars().all():
        provider = providers.lock(connection, uuid)
        others = [held for held in of_provider(connection, provider.id) if held.id != trait.id]
        replace(connection, provider, [*others, trait] if present else others)


def replace(connection: Connection, provider: Provider, wanted: Collection[Name]) -> None:
    """Make `wanted` the provider's traits; the generation stays if they are already."""
    existing = {trait.id for trait in of_provider(connection, provider.id)}
    new = {trait.id for trait in wanted}
    if new == existing:
        return
    if existing - new:
        connection.execute(
            sa.delete(provider_traits).where(
                provider_traits.c.provider_id == provider.id, provider_traits.c.trait_id.in_(existing - new)
            )
        )
    if new - existing:
        rows = [{"provider_id": provider.id, "trait_id": trait_id} for trait_id in new - existing]
        connection.execute(sa.insert(provider_traits), rows)
    providers.touched(connection, provider)
