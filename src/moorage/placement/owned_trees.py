"""Whose trees are, as an operator sees and changes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.among import among
from moorage.db.database import Database
from moorage.db.tables.placement import providers, tree_owners
from moorage.placement.store import tree_owners as store
from moorage.placement.store.tree_owners import OwnedTree


class NoSuchTreeError(Exception):
    """What an operator named is no tree."""


def listed(database: Database, *, unowned: bool = False) -> Iterator[OwnedTree]:
    """All trees, or those that are nobody's; read while they are gone through."""
    with database.snapshot() as connection:
        yield from store.listed(connection, unowned=unowned)


def give(database: Database, names: Sequence[str], user_id: str, of_user: str | None = None) -> list[str]:
    """The trees of these roots, by name or UUID, and all that `of_user` has, are the user's from now on.

    The answer is their UUIDs.
    """

    def work(connection: Connection) -> list[str]:
        found = _named(connection, names) | _of_user(connection, of_user)
        store.give(connection, found.keys(), user_id)
        return list(found.values())

    return database.transact(work)


def take(database: Database, names: Sequence[str], of_user: str | None = None) -> list[str]:
    """The same trees are nobody's from now on."""

    def work(connection: Connection) -> list[str]:
        found = _named(connection, names) | _of_user(connection, of_user)
        store.take(connection, found.keys())
        return list(found.values())

    return database.transact(work)


def _named(connection: Connection, names: Sequence[str]) -> dict[int, str]:
    table = providers
    query = (
        sa.select(table.c.id, table.c.uuid, table.c.name, table.c.root_id)
        .where(among(connection, table.c.uuid, names) | among(connection, table.c.name, names))
        .order_by(table.c.id)
        .with_for_update()
    )
    rows = connection.execute(query).all()
    known = {row.uuid for row in rows} | {row.name for row in rows}
    for name in names:
        if name not in known:
            raise NoSuchTreeError(f"there is no provider {name}")
    for row in rows:
        if row.root_id != row.id:
            raise NoSuchTreeError(f"{row.name} is the child of another provider: name the root of its tree")
    return {row.id: row.uuid for row in rows}


def _of_user(connection: Connection, user_id: str | None) -> dict[int, str]:
    if user_id is None:
        return {}
    query = (
        sa.select(providers.c.id, providers.c.uuid)
        .join_from(providers, tree_owners, tree_owners.c.root_id == providers.c.id)
        .where(tree_owners.c.user_id == user_id)
        .order_by(providers.c.id)
    )
    return dict(connection.execute(query).all())
