"""Providers and the trees that they form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.tables.placement import allocations, providers
from moorage.placement import feed
from moorage.placement.errors import (
    ParentRefused,
    ProviderExists,
    ProviderGenerationConflict,
    ProviderHasChildren,
    ProviderInUse,
    ProviderNotFound,
)
from moorage.placement.store import tree_owners
from moorage.placement.store.writable_trees import ANY_TREE, WritableTrees

_root = providers.alias("root")
_parent = providers.alias("parent")
_SELECT = sa.select(
    providers.c.id,
    providers.c.uuid,
    providers.c.name,
    providers.c.generation,
    providers.c.parent_id,
    providers.c.root_id,
    providers.c.updated_at,
    _parent.c.uuid.label("parent_uuid"),
    _root.c.uuid.label("root_uuid"),
).select_from(
    providers.join(_root, providers.c.root_id == _root.c.id).outerjoin(
        _parent, providers.c.parent_id == _parent.c.id
    )
)


@dataclass(slots=True)
class Provider:
    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None
    root_id: int
    updated_at: datetime
    parent_uuid: str | None
    root_uuid: str

    def expect_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise ProviderGenerationConflict


def find(connection: Connection, uuid: str) -> Provider:
    row = connection.execute(_SELECT.where(providers.c.uuid == uuid)).one_or_none()
    if row is None:
        raise ProviderNotFound(uuid)
    return Provider(**row._mapping)


def in_tree(connection: Connection, root_uuid: str) -> list[Provider]:
    """All of the tree that this provider is the root of; none if it does not exist."""
    rows = connection.execute(_SELECT.where(_root.c.uuid == root_uuid).order_by(providers.c.id))
    return [Provider(**row._mapping) for row in rows]


def lock(connection: Connection, uuid: str, trees: WritableTrees = ANY_TREE) -> Provider:
    """Find a provider to change it: nobody else changes it until this transaction ends."""
    query = sa.select(providers.c.id).where(providers.c.uuid == uuid).with_for_update()
    if connection.execute(query).one_or_none() is None:
        raise ProviderNotFound(uuid)
    provider = find(connection, uuid)
    trees.admit(connection, [provider.root_id])
    return provider


def lock_all(connection: Connection, uuids: Iterable[str]) -> None:
    """Lock those that exist, in the order of their ids, so that no two transactions wait in a ring."""
    query = sa.select(providers.c.id).where(among(connection, providers.c.uuid, uuids))
    connection.execute(query.order_by(providers.c.id).with_for_update()).all()


def touched(
    connection: Connection,
    provider: Provider,
    *,
    times: int = 1,
    kind: feed.ChangeKind = feed.ChangeKind.PROVIDER,
) -> None:
    """Count a change in the provider's generation, and tell the feed."""
    provider.generation += times
    provider.updated_at = utcnow()
    connection.execute(
        sa.update(providers)
        .where(providers.c.id == provider.id)
        .values(generation=provider.generation, updated_at=provider.updated_at)
    )
    feed.append(connection, kind, [provider.id])


def create(
    connection: Connection,
    uuid: str,
    name: str,
    parent_uuid: str | None,
    trees: WritableTrees = ANY_TREE,
) -> Provider:
    parent = _parent_for(connection, uuid, parent_uuid) if parent_uuid is not None else None
    _refuse_duplicates(connection, uuid, name)
    values = {
        "uuid": uuid,
        "name": name,
        "parent_id": parent and parent.id,
        "root_id": parent.root_id if parent else 0,
    }
    new_id = connection.execute(sa.insert(providers).values(values).returning(providers.c.id)).scalar_one()
    if parent is None:
        connection.execute(sa.update(providers).where(providers.c.id == new_id).values(root_id=new_id))
        trees.keep(connection, [new_id])
    else:
        trees.admit(connection, [parent.root_id])
    feed.append(connection, feed.ChangeKind.PROVIDER, [new_id])
    return find(connection, uuid)


def _refuse_duplicates(connection: Connection, uuid: str | None, name: str) -> None:
    query = sa.select(providers.c.uuid, providers.c.name).where(
        (providers.c.name == name) | (providers.c.uuid == uuid)
    )
    rows = connection.execute(query).all()
    duplicates = [f"uuid: {uuid}"] if any(row.uuid == uuid for row in rows) else []
    duplicates += [f"name: {name}"] if any(row.name == name for row in rows) else []
    if duplicates:
        raise ProviderExists(f"Conflicting resource provider {', '.join(duplicates)} already exists.")


def _parent_for(connection: Connection, uuid: str, parent_uuid: str) -> Provider:
    if parent_uuid == uuid:
        raise ParentRefused(
            "parent provider UUID cannot be same as UUID. Leave it out if there is no parent."
        )
    try:
        # Its row is locked so that it can't be deleted or moved to another tree meanwhile.
        return lock(connection, parent_uuid)
    except ProviderNotFound as error:
        raise ParentRefused("parent provider UUID does not exist.") from error


def rename(connection: Connection, provider: Provider, name: str) -> None:
    if name == provider.name:
        return
    taken = connection.execute(
        sa.select(providers.c.id).where(providers.c.name == name, providers.c.id != provider.id)
    ).first()
    if taken is not None:
        raise ProviderExists(f"Conflicting resource provider {name} already exists.")
    connection.execute(sa.update(providers).where(providers.c.id == provider.id).values(name=name))
    provider.name = name
    provider.updated_at = utcnow()
    feed.append(connection, feed.ChangeKind.PROVIDER, [provider.id])


def set_parent(
    connection: Connection,
    provider: Provider,
    parent_uuid: str | None,
    *,
    reparenting: bool,
    trees: WritableTrees = ANY_TREE,
) -> None:
    """Move a provider, with all that hangs below it, under another parent or out of its tree."""
    if parent_uuid == provider.parent_uuid:
        return
    if provider.parent_uuid is not None and not reparenting:
        what = "un-parenting" if parent_uuid is None else "re-parenting"
        raise ParentRefused(f"{what} a provider is not currently allowed.")
    tree = _lock_tree(connection, provider.root_id)
    moved = _subtree(tree, provider.id)
    if parent_uuid is None:
        parent_id, root_id = None, provider.id
    else:
        parent = _new_parent(connection, parent_uuid, moved)
        trees.admit(connection, [parent.root_id])
        parent_id, root_id = parent.id, parent.root_id
    connection.execute(
        sa.update(providers)
        .where(providers.c.id == provider.id)
        .values(parent_id=parent_id, updated_at=utcnow())
    )
    connection.execute(sa.update(providers).where(providers.c.id.in_(moved)).values(root_id=root_id))
    tree_owners.follow(connection, provider.id, provider.root_id, root_id)
    feed.append(connection, feed.ChangeKind.PROVIDER, moved)


def _new_parent(connection: Connection, parent_uuid: str, moved: list[int]) -> Provider:
    try:
        parent = lock(connection, parent_uuid)
    except ProviderNotFound as error:
        raise ParentRefused("parent provider UUID does not exist.") from error
    if parent.id in moved:
        raise ParentRefused("creating loop in the provider tree is not allowed.")
    return parent


def _lock_tree(connection: Connection, root_id: int) -> list[tuple[int, int | None]]:
    """Lock all of a tree; again, if others hung something into it while we waited for their locks."""
    query = sa.select(providers.c.id, providers.c.parent_id).where(providers.c.root_id == root_id)
    query = query.order_by(providers.c.id).with_for_update()
    tree: list[tuple[int, int | None]] = []
    while (found := [(row.id, row.parent_id) for row in connection.execute(query)]) != tree:
        tree = found
    return tree


def _subtree(tree: list[tuple[int, int | None]], top: int) -> list[int]:
    children: dict[int | None, list[int]] = {}
    for provider_id, parent_id in tree:
        children.setdefault(parent_id, []).append(provider_id)
    found = [top]
    for provider_id in found:  # grows while we walk it
        found.extend(children.get(provider_id, ()))
    return found


def delete(connection: Connection, uuid: str, trees: WritableTrees = ANY_TREE) -> None:
    provider = lock(connection, uuid, trees)
    if connection.execute(sa.select(sa.exists().where(providers.c.parent_id == provider.id))).scalar_one():
        raise ProviderHasChildren(
            f"Unable to delete parent resource provider {uuid}: It has child resource providers."
        )
    if connection.execute(
        sa.select(sa.exists().where(allocations.c.provider_id == provider.id))
    ).scalar_one():
        raise ProviderInUse
    connection.execute(sa.delete(providers).where(providers.c.id == provider.id))
    feed.append(connection, feed.ChangeKind.PROVIDER, [provider.id])
