"""Resource classes and traits: names with an id, some standard, some made by users."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import os_resource_classes
import os_traits
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.among import among
from moorage.db.tables.placement import inventories, provider_traits, resource_classes, traits
from moorage.db.upsert import insert_if_absent
from moorage.placement import feed
from moorage.placement.errors import ClassNotFound, NameExists, NameInUse, StandardName, TraitNotFound


class Name(NamedTuple):
    id: int
    name: str
    changed_at: datetime


def is_custom(name: str) -> bool:
    return name.startswith("CUSTOM_")


def ensure_standard(connection: Connection) -> None:
    """Add the standard names that this database does not have yet (a newer os-traits brings more)."""
    for table, standard in (
        (resource_classes, os_resource_classes.STANDARDS),
        (traits, os_traits.get_traits()),
    ):
        known = set(connection.execute(sa.select(table.c.name)).scalars())
        missing = [{"name": name} for name in standard if name not in known]
        if missing:
            connection.execute(insert_if_absent(connection, table, key=["name"]), missing)
            feed.append(connection, feed.ChangeKind.NAMES)


def all_classes(connection: Connection) -> list[Name]:
    rows = connection.execute(sa.select(resource_classes).order_by(resource_classes.c.id))
    return [Name(row.id, row.name, row.updated_at) for row in rows]


def all_class_ids(connection: Connection) -> dict[str, int]:
    query = sa.select(resource_classes.c.name, resource_classes.c.id)
    return dict(connection.execute(query).all())


def known_class_ids(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    """Ids by name, of those that exist."""
    table = resource_classes
    query = sa.select(table.c.name, table.c.id).where(among(connection, table.c.name, names))
    return dict(connection.execute(query).all())


def class_ids(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    """Ids by name; an unknown name is an error."""
    wanted = set(names)
    found = known_class_ids(connection, wanted)
    for name in wanted - set(found):
        raise ClassNotFound(name)
    return found


def find_class(connection: Connection, name: str) -> Name:
    row = connection.execute(sa.select(resource_classes).where(resource_classes.c.name == name)).one_or_none()
    if row is None:
        raise ClassNotFound(name)
    return Name(row.id, row.name, row.updated_at)


def ensure_class(connection: Connection, name: str) -> bool:
    """True if it had to be made."""
    return _ensure(connection, resource_classes, name)


def ensure_trait(connection: Connection, name: str) -> bool:
    """True if it had to be made."""
    return _ensure(connection, traits, name)


def _ensure(connection: Connection, table: sa.Table, name: str) -> bool:
    insert = insert_if_absent(connection, table, key=["name"]).values(name=name).returning(table.c.id)
    made = connection.execute(insert).scalar_one_or_none() is not None
    if made:
        feed.append(connection, feed.ChangeKind.NAMES)
    return made


def rename_class(connection: Connection, old: str, new: str) -> None:
    found = find_class(connection, old)
    if not is_custom(old):
        raise StandardName(f"Cannot update standard resource class {old}")
    taken = connection.execute(
        sa.select(resource_classes.c.id).where(
            resource_classes.c.name == new, resource_classes.c.id != found.id
        )
    ).first()
    if taken is not None:
        raise NameExists(f"Resource class already exists: {new}")
    connection.execute(sa.update(resource_classes).where(resource_classes.c.id == found.id).values(name=new))
    feed.append(connection, feed.ChangeKind.NAMES)


def delete_class(connection: Connection, name: str) -> None:
    found = find_class(connection, name)
    if not is_custom(name):
        raise StandardName(f"Cannot delete standard resource class {name}.")
    if _any(connection, inventories.c.class_id == found.id):
        raise NameInUse(f"Cannot delete resource class {name}. Class is in use in inventory.")
    connection.execute(sa.delete(resource_classes).where(resource_classes.c.id == found.id))
    feed.append(connection, feed.ChangeKind.NAMES)


def find_trait(connection: Connection, name: str) -> Name:
    row = connection.execute(sa.select(traits).where(traits.c.name == name)).one_or_none()
    if row is None:
        raise TraitNotFound(name)
    return Name(row.id, row.name, row.created_at)


def delete_trait(connection: Connection, name: str) -> None:
    found = find_trait(connection, name)
    if not is_custom(name):
        raise StandardName(f"Cannot delete standard trait {name}.")
    if _any(connection, provider_traits.c.trait_id == found.id):
        raise NameInUse(f"The trait {name} is in use by a resource provider.")
    connection.execute(sa.delete(traits).where(traits.c.id == found.id))
    feed.append(connection, feed.ChangeKind.NAMES)


def list_traits(
    connection: Connection,
    *,
    names: Iterable[str] | None = None,
    prefix: str | None = None,
    associated: bool | None = None,
) -> list[Name]:
    query = sa.select(traits).order_by(traits.c.id)
    if names is not None:
        query = query.where(among(connection, traits.c.name, names))
    if prefix is not None:
        query = query.where(traits.c.name.startswith(prefix, autoescape=True))
    if associated is not None:
        used = sa.exists().where(provider_traits.c.trait_id == traits.c.id)
        query = query.where(used if associated else ~used)
    return [Name(row.id, row.name, row.created_at) for row in connection.execute(query)]


def trait_ids(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    return {found.name: found.id for found in list_traits(connection, names=names)}


def _any(connection: Connection, condition: sa.ColumnElement[bool]) -> bool:
    return bool(connection.execute(sa.select(sa.exists().where(condition))).scalar_one())
