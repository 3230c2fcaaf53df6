"""Inventories: what a provider has of each resource class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.tables.placement import inventories, resource_classes
from moorage.placement.errors import InventoryExists, InventoryInUse, InventoryNotFound
from moorage.placement.store import names, providers
from moorage.placement.store.providers import Provider

MAX_INT = 2_147_483_647
FIELDS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


@dataclass(frozen=True, slots=True)
class Inventory:
    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0
    used: int = 0
    updated_at: datetime | None = None

    @property
    def capacity(self) -> int:
        return int((self.total - self.reserved) * self.allocation_ratio)

    def values(self) -> dict[str, int | float]:
        """What a user sees and sets."""
        return {name: getattr(self, name) for name in FIELDS}

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Inventory:
        return cls(**{name: body[name] for name in FIELDS if name in body})


def of_provider(connection: Connection, provider_id: int) -> dict[str, Inventory]:
    """By the name of the resource class."""
    table = inventories
    query = (
        sa.select(
            resource_classes.c.name, *(table.c[name] for name in FIELDS), table.c.used, table.c.updated_at
        )
        .join_from(table, resource_classes, table.c.class_id == resource_classes.c.id)
        .where(table.c.provider_id == provider_id)
        .order_by(table.c.class_id)
    )
    return {name: Inventory(*values) for name, *values in connection.execute(query)}


def add(connection: Connection, provider: Provider, class_name: str, inventory: Inventory) -> None:
    class_id = names.class_ids(connection, [class_name])[class_name]
    if class_name in of_provider(connection, provider.id):
        raise InventoryExists(class_name)
    _insert(connection, provider.id, {class_id: inventory})
    providers.touched(connection, provider)


def update(connection: Connection, provider: Provider, class_name: str, inventory: Inventory) -> None:
    class_id = names.class_ids(connection, [class_name])[class_name]
    if _update(connection, provider.id, {class_id: inventory}) == 0:
        raise InventoryNotFound(class_name)
    providers.touched(connection, provider)


def remove(connection: Connection, provider: Provider, class_name: str) -> None:
    class_id = names.class_ids(connection, [class_name])[class_name]
    existing = of_provider(connection, provider.id)
    if class_name not in existing:
        raise InventoryNotFound(class_name)
    _delete(connection, provider, {class_name: class_id}, existing)
    providers.touched(connection, provider)


def replace(connection: Connection, provider: Provider, wanted: Mapping[str, Inventory]) -> None:
    """Make `wanted` the provider's inventories: add, change and remove what it takes."""
    existing = of_provider(connection, provider.id)
    ids = names.class_ids(connection, {*existing, *wanted})
    gone = {name: ids[name] for name in existing if name not in wanted}
    if gone:
        _delete(connection, provider, gone, existing)
    _insert(connection, provider.id, {ids[name]: new for name, new in wanted.items() if name not in existing})
    _update(connection, provider.id, {ids[name]: new for name, new in wanted.items() if name in existing})
    providers.touched(connection, provider)


def merge(connection: Connection, provider: Provider, wanted: Mapping[str, Inventory]) -> None:
    """As `replace`, but nothing is removed: the state between the two halves of a reshape."""
    replace(connection, provider, {**of_provider(connection, provider.id), **wanted})


def _insert(connection: Connection, provider_id: int, new: Mapping[int, Inventory]) -> None:
    rows = [
        {"provider_id": provider_id, "class_id": class_id, **inventory.values(), "used": 0}
        for class_id, inventory in new.items()
    ]
    if rows:
        connection.execute(sa.insert(inventories), rows)


def _update(connection: Connection, provider_id: int, changed: Mapping[int, Inventory]) -> int:
    count = 0
    for class_id, inventory in changed.items():
        statement = (
            sa.update(inventories)
            .where(inventories.c.provider_id == provider_id, inventories.c.class_id == class_id)
            .values(**inventory.values(), updated_at=utcnow())
        )
        count += connection.execute(statement).rowcount
    return count


def _delete(
    connection: Connection, provider: Provider, gone: Mapping[str, int], existing: Mapping[str, Inventory]
) -> None:
    in_use = [name for name in gone if existing[name].used]
    if in_use:
        raise InventoryInUse(", ".join(in_use), provider.uuid)
    connection.execute(
        sa.delete(inventories).where(
            inventories.c.provider_id == provider.id, inventories.c.class_id.in_(gone.values())
        )
    )
