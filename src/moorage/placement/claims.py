"""Claims: the only transaction that changes usage.

A claim locks its consumers, then its providers in the order of their ids, and checks capacity against the
`used` counter of each inventory while it holds the locks. So claims on one busy provider queue up instead of
failing each other, and a refusal always means what it says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection, Row

from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.tables.placement import allocations, consumer_types, consumers, inventories, providers
from moorage.placement import feed
from moorage.placement.errors import (
    CapacityExceeded,
    ConsumerGenerationConflict,
    InvalidInventory,
    UnitsViolated,
    UnknownProvider,
)
from moorage.placement.store import names


class Unchecked(Enum):
    ANY = "any"


ANY: Final = Unchecked.ANY
"""No consumer generation given: microversions below 1.28 don't know it."""

Key = tuple[int, int]
"""A provider's id and a resource class's id: one inventory."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one consumer shall hold from now on, in place of all that it holds now."""

    consumer_uuid: str
    project_id: str
    user_id: str
    resources: Mapping[str, Mapping[str, int]]
    """Amounts by resource class, by the provider's UUID; nothing at all releases everything."""
    generation: int | Unchecked | None = ANY
    type_name: str | None = None


@dataclass(slots=True)
class _Held:
    """A consumer row under lock, and what it holds."""

    id: int
    generation: int
    amounts: dict[Key, int] = field(default_factory=dict)


def replace(connection: Connection, claims: Sequence[Claim]) -> None:
    """Make all of `claims` true at once, or raise and change nothing."""
    held = _lock_consumers(connection, claims)
    locked = _lock_providers(connection, claims, held)
    class_names = {name for claim in claims for amounts in claim.resources.values() for name in amounts}
    class_ids = names.class_ids(connection, class_names) if class_names else {}
    wanted = {
        claim.consumer_uuid: {
            (locked[uuid], class_ids[name]): amount
            for uuid, amounts in claim.resources.items()
            for name, amount in amounts.items()
        }
        for claim in claims
    }
    inventory = _inventories(connection, set(locked.values()))
    change = _check(claims, held, wanted, inventory, _Words(locked, class_ids))
    _write_allocations(connection, claims, held, wanted)
    _write_consumers(connection, claims, held)
    _write_usage(connection, change)
    counted = {
        key[0] for claim in claims for key in wanted[claim.consumer_uuid] or held[claim.consumer_uuid].amounts
    }
    _count_generations(connection, counted)
    feed.append(connection, feed.Kind.USAGE, sorted({*(key[0] for key in change), *counted}))


def release(connection: Connection, consumer_uuid: str) -> bool:
    """Drop all that a consumer holds, and the consumer; False if it held nothing."""
    query = sa.select(consumers.c.id).where(consumers.c.uuid == consumer_uuid).with_for_update()
    consumer_id = connection.execute(query).scalar_one_or_none()
    if consumer_id is None:
        return False
    amounts = _amounts(connection, [consumer_id])[consumer_id]
    _lock_ids(connection, {provider_id for provider_id, _ in amounts})
    connection.execute(sa.delete(consumers).where(consumers.c.id == consumer_id))
    _write_usage(connection, {key: -used for key, used in amounts.items()})
    feed.append(connection, feed.Kind.USAGE, sorted({provider_id for provider_id, _ in amounts}))
    return bool(amounts)


# ---------------------------------------------------------------- locks


def _lock_consumers(connection: Connection, claims: Sequence[Claim]) -> dict[str, _Held]:
    """Lock the consumers that exist, make those that don't, and check the generations given."""
    by_uuid = {claim.consumer_uuid: claim for claim in claims}
    held = _existing_consumers(connection, list(by_uuid))
    for uuid, consumer in held.items():
        _expect(by_uuid[uuid], consumer.generation)
    for uuid in sorted(set(by_uuid) - set(held)):
        claim = by_uuid[uuid]
        _expect(claim, None)
        held[uuid] = _make_consumer(connection, claim)
    known = [consumer.id for consumer in held.values()]
    for consumer_id, amounts in _amounts(connection, known).items():
        next(consumer for consumer in held.values() if consumer.id == consumer_id).amounts = amounts
    return held


def _existing_consumers(connection: Connection, uuids: list[str]) -> dict[str, _Held]:
    query = (
        sa.select(consumers.c.uuid, consumers.c.id, consumers.c.generation)
        .where(among(connection, consumers.c.uuid, uuids))
        .order_by(consumers.c.id)
        .with_for_update()
    )
    return {
        uuid: _Held(consumer_id, generation) for uuid, consumer_id, generation in connection.execute(query)
    }


def _expect(claim: Claim, generation: int | None) -> None:
    if claim.generation is not ANY and claim.generation != generation:
        raise ConsumerGenerationConflict(generation, claim.generation)


def _make_consumer(connection: Connection, claim: Claim) -> _Held:
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = (
        insert(consumers)
        .values(uuid=claim.consumer_uuid, project_id=claim.project_id, user_id=claim.user_id, generation=0)
        .on_conflict_do_nothing(index_elements=["uuid"])
        .returning(consumers.c.id)
    )
    new_id = connection.execute(statement).scalar_one_or_none()
    if new_id is not None:
        return _Held(new_id, 0)
    # Somebody made it while we looked: now it exists, and is held to what the claim expects.
    found = _existing_consumers(connection, [claim.consumer_uuid])[claim.consumer_uuid]
    _expect(claim, found.generation)
    return found


def _amounts(connection: Connection, consumer_ids: Sequence[int]) -> dict[int, dict[Key, int]]:
    table = allocations
    query = sa.select(table.c.consumer_id, table.c.provider_id, table.c.class_id, table.c.used).where(
        among(connection, table.c.consumer_id, consumer_ids)
    )
    found: dict[int, dict[Key, int]] = defaultdict(dict)
    for consumer_id, provider_id, class_id, used in connection.execute(query):
        found[consumer_id][(provider_id, class_id)] = used
    return found


def _lock_providers(
    connection: Connection, claims: Sequence[Claim], held: Mapping[str, _Held]
) -> dict[str, int]:
    """Lock the providers that gain or lose something; their ids by UUID."""
    uuids = {uuid for claim in claims for uuid in claim.resources}
    losing = {provider_id for consumer in held.values() for provider_id, _ in consumer.amounts}
    query = (
        sa.select(providers.c.uuid, providers.c.id)
        .where(
            among(connection, providers.c.uuid, uuids) | among(connection, providers.c.id, losing)
            if losing
            else among(connection, providers.c.uuid, uuids)
        )
        .order_by(providers.c.id)
        .with_for_update()
    )
    locked = dict(connection.execute(query).tuples().all())
    for uuid in uuids - set(locked):
        raise UnknownProvider(uuid)
    return locked


def _lock_ids(connection: Connection, provider_ids: set[int]) -> None:
    query = (
        sa.select(providers.c.id)
        .where(among(connection, providers.c.id, provider_ids))
        .order_by(providers.c.id)
    )
    connection.execute(query.with_for_update()).all()


# ---------------------------------------------------------------- checks


class _Words:
    """Names for the ids that an error has to mention."""

    def __init__(self, provider_ids: Mapping[str, int], class_ids: Mapping[str, int]) -> None:
        self._providers = {provider_id: uuid for uuid, provider_id in provider_ids.items()}
        self._classes = {class_id: name for name, class_id in class_ids.items()}

    def __call__(self, key: Key) -> tuple[str, str]:
        return self._classes[key[1]], self._providers[key[0]]


def _inventories(connection: Connection, provider_ids: set[int]) -> dict[Key, Row[tuple[object, ...]]]:
    query = sa.select(inventories).where(among(connection, inventories.c.provider_id, provider_ids))
    return {(row.provider_id, row.class_id): row for row in connection.execute(query)}


def _check(
    claims: Sequence[Claim],
    held: Mapping[str, _Held],
    wanted: Mapping[str, Mapping[Key, int]],
    inventory: Mapping[Key, Row[tuple[object, ...]]],
    words: _Words,
) -> dict[Key, int]:
    """The change in usage of each inventory; raises if one of them can't take its share."""
    change: dict[Key, int] = defaultdict(int)
    for claim in claims:
        for key, amount in held[claim.consumer_uuid].amounts.items():
            change[key] -= amount
        for key, amount in wanted[claim.consumer_uuid].items():
            row = inventory.get(key)
            if row is None:
                raise InvalidInventory(*words(key))
            if not row.min_unit <= amount <= row.max_unit or amount % row.step_size:
                raise UnitsViolated(*words(key))
            change[key] += amount
    for key in {key for amounts in wanted.values() for key in amounts}:
        row = inventory[key]
        # Over capacity is fine as long as this claim does not make it worse.
        if change[key] > 0 and row.used + change[key] > (row.total - row.reserved) * row.allocation_ratio:
            raise CapacityExceeded(*words(key))
    return {key: delta for key, delta in change.items() if delta}


# ---------------------------------------------------------------- writes


def _write_allocations(
    connection: Connection,
    claims: Sequence[Claim],
    held: Mapping[str, _Held],
    wanted: Mapping[str, Mapping[Key, int]],
) -> None:
    emptied = [consumer.id for consumer in held.values() if consumer.amounts]
    if emptied:
        connection.execute(
            sa.delete(allocations).where(among(connection, allocations.c.consumer_id, emptied))
        )
    rows = [
        {
            "consumer_id": held[claim.consumer_uuid].id,
            "provider_id": key[0],
            "class_id": key[1],
            "used": amount,
        }
        for claim in claims
        for key, amount in wanted[claim.consumer_uuid].items()
    ]
    if rows:
        connection.execute(sa.insert(allocations), rows)


def _write_consumers(connection: Connection, claims: Sequence[Claim], held: Mapping[str, _Held]) -> None:
    """Count the change in each consumer's generation; a consumer that holds nothing any more goes."""
    for claim in claims:
        consumer = held[claim.consumer_uuid]
        mine = consumers.c.id == consumer.id
        if not claim.resources:
            connection.execute(sa.delete(consumers).where(mine))
            continue
        values = {
            "generation": consumer.generation + 1,
            "project_id": claim.project_id,
            "user_id": claim.user_id,
        }
        if claim.type_name is not None:
            values["type_id"] = _type_id(connection, claim.type_name)
        connection.execute(sa.update(consumers).where(mine).values(**values))


def _type_id(connection: Connection, name: str) -> int:
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    query = sa.select(consumer_types.c.id).where(consumer_types.c.name == name)
    found = connection.execute(query).scalar_one_or_none()
    if found is None:
        connection.execute(
            insert(consumer_types).values(name=name).on_conflict_do_nothing(index_elements=["name"])
        )
        found = connection.execute(query).scalar_one()
    return int(found)


_ADD_USAGE = (
    sa.update(inventories)
    .where(
        inventories.c.provider_id == sa.bindparam("of_provider"),
        inventories.c.class_id == sa.bindparam("of_class"),
    )
    .values(used=inventories.c.used + sa.bindparam("delta"))
)


def _write_usage(connection: Connection, change: Mapping[Key, int]) -> None:
    rows = [
        {"of_provider": provider_id, "of_class": class_id, "delta": delta}
        for (provider_id, class_id), delta in change.items()
    ]
    if rows:
        connection.execute(_ADD_USAGE, rows)


def _count_generations(connection: Connection, provider_ids: set[int]) -> None:
    if provider_ids:
        connection.execute(
            sa.update(providers)
            .where(among(connection, providers.c.id, provider_ids))
            .values(generation=providers.c.generation + 1, updated_at=utcnow())
        )
