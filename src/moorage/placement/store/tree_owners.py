"""Which agent's user a tree of providers belongs to. The published API shows nothing of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.tables.placement import providers, tree_owners
from moorage.db.upsert import insert_if_absent, upsert

_BATCH = 5_000


class OwnedTree(NamedTuple):
    """A tree, by its root, and whose it is; nobody's if that is None."""

    root_id: int
    uuid: str
    name: str
    user_id: str | None
    since: datetime | None


_SELECT = sa.select(
    providers.c.id, providers.c.uuid, providers.c.name, tree_owners.c.user_id, tree_owners.c.since
).outerjoin_from(providers, tree_owners, tree_owners.c.root_id == providers.c.id)


def of_roots(connection: Connection, root_ids: Collection[int]) -> dict[int, OwnedTree]:
    """By the ids of those roots that exist."""
    rows = connection.execute(_SELECT.where(among(connection, providers.c.id, root_ids)))
    return {row.id: OwnedTree(*row) for row in rows}


def roots_of(connection: Connection, uuids: Collection[str]) -> dict[str, int]:
    """The roots of those of these providers that exist."""
    query = sa.select(providers.c.uuid, providers.c.root_id)
    return dict(connection.execute(query.where(among(connection, providers.c.uuid, uuids))).all())


def listed(connection: Connection, *, unowned: bool = False) -> Iterator[OwnedTree]:
    """All trees, or those that are nobody's."""
    query = _SELECT.where(providers.c.root_id == providers.c.id).order_by(providers.c.id)
    if unowned:
        query = query.where(tree_owners.c.user_id.is_(None))
    for row in connection.execute(query.execution_options(yield_per=_BATCH)):
        yield OwnedTree(*row)


def add(connection: Connection, root_ids: Collection[int], user_id: str) -> None:
    """Trees that are nobody's become the user's; in the order of their ids, so that two who do this at the
    same time don't wait in a ring."""
    rows = [{"root_id": root_id, "user_id": user_id} for root_id in sorted(root_ids)]
    if rows:
        connection.execute(insert_if_absent(connection, tree_owners, key=["root_id"]), rows)


def give(connection: Connection, root_ids: Collection[int], user_id: str) -> None:
    """These trees are the user's from now on, whosever they were."""
    now = utcnow()
    rows = [{"root_id": root_id, "user_id": user_id, "since": now} for root_id in sorted(root_ids)]
    if rows:
        statement = upsert(connection, tree_owners, key=["root_id"], renewed=["user_id", "since"])
        connection.execute(statement, rows)


def take(connection: Connection, root_ids: Collection[int]) -> None:
    """These trees are nobody's from now on."""
    connection.execute(sa.delete(tree_owners).where(among(connection, tree_owners.c.root_id, root_ids)))


def follow(connection: Connection, provider_id: int, old_root_id: int, new_root_id: int) -> None:
    """A provider has moved: what comes out of a tree belongs to whom the tree does."""
    if new_root_id != provider_id:
        if old_root_id == provider_id:
            take(connection, [provider_id])
        return
    query = sa.select(tree_owners.c.user_id).where(tree_owners.c.root_id == old_root_id)
    user_id = connection.execute(query).scalar_one_or_none()
    if user_id is None:
        take(connection, [provider_id])
    else:
        give(connection, [provider_id], user_id)
