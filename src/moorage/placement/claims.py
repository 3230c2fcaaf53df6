"""Claims: the only transaction that changes usage.

A claim locks its consumers, then its providers in the order of their ids, and checks capacity against the
`used` counter of each inventory while it holds the locks. So claims on one busy provider queue up instead of
failing each other, and a refusal always means what it says. Claims that arrive together are decided
together, in one transaction, but each on its own merits: see `desk`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

import sqlalchemy as sa
from prometheus_client import Histogram
from sqlalchemy.engine import Connection, Row

from moorage.core.clock import utcnow
from moorage.db import bulk
from moorage.db.among import among, one_of
from moorage.db.database import Database
from moorage.db.desk import Desk
from moorage.db.tables.placement import allocations, consumer_types, consumers, inventories, providers
from moorage.db.upsert import insert_if_absent
from moorage.placement import feed
from moorage.placement.errors import (
    CapacityExceeded,
    ClassNotFound,
    ConsumerGenerationConflict,
    InvalidInventory,
    PlacementError,
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


SECONDS = Histogram(
    "moorage_placement_claim_seconds",
    "Time to decide claims that came together, in the database's transaction.",
    buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10),
)
ClaimRequest = Sequence[Claim]
"""The claims of one request: all of them come true, or none."""


def replace(connection: Connection, request: ClaimRequest) -> None:
    """Make `request` true within a transaction that goes on, or raise."""
    for error in decide(connection, [request]):
        if error is not None:
            raise error


@dataclass(slots=True)
class KnownIds:
    """Ids that never change once they are known: those of standard classes and of consumer types."""

    classes: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)


ClaimDesk = Desk[ClaimRequest, None]
"""Claims from many threads; for each its error, or None if it is done."""
MOST_TOGETHER = 64


def desk(database: Database) -> ClaimDesk:
    known = KnownIds()
    return Desk(
        database,
        lambda connection, requests: decide(connection, requests, known),
        most_together=MOST_TOGETHER,
        subjects=lambda request: (claim.consumer_uuid for claim in request),
    )


@SECONDS.time()
def decide(
    connection: Connection, requests: Sequence[ClaimRequest], known: KnownIds | None = None
) -> Sequence[Exception | None]:
    """Decide requests about different consumers, in order; for each its error, or None if it is done."""
    every = [claim for request in requests for claim in request]
    if not every:
        return [None for _ in requests]
    known = known or KnownIds()
    held = _lock_consumers(connection, every)
    desk = _Decision(
        held=held,
        provider_ids=_lock_providers(connection, every, held),
        class_ids=_class_ids(connection, every, known.classes),
    )
    desk.inventory = _inventories(connection, set(desk.provider_ids.values()))
    errors: list[Exception | None] = []
    for request in requests:
        try:
            desk.admit(request)
            errors.append(None)
        except PlacementError as error:
            errors.append(error)
    desk.type_ids = _type_ids(connection, [claim for claim, _ in desk.admitted], known.types)
    desk.write(connection)
    return errors


def release(connection: Connection, consumer_uuid: str) -> bool:
    """Drop all that a consumer holds, and the consumer; False if it held nothing."""
    query = sa.select(consumers.c.id).where(consumers.c.uuid == consumer_uuid).with_for_update()
    consumer_id = connection.execute(query).scalar_one_or_none()
    if consumer_id is None:
        return False
    amounts = _amounts(connection, [consumer_id])[consumer_id]
    lock = sa.select(providers.c.id).where(among(connection, providers.c.id, {key[0] for key in amounts}))
    connection.execute(lock.order_by(providers.c.id).with_for_update()).all()
    connection.execute(sa.delete(consumers).where(consumers.c.id == consumer_id))
    _add_usage(connection, {key: -used for key, used in amounts.items()})
    feed.append(connection, feed.ChangeKind.USAGE, sorted({provider_id for provider_id, _ in amounts}))
    return bool(amounts)


# ---------------------------------------------------------------- what is locked and read


@dataclass(slots=True)
class _Held:
    """A consumer under lock, and what it holds; `id` is None as long as it does not exist."""

    id: int | None = None
    generation: int | None = None
    amounts: dict[Key, int] = field(default_factory=dict)


_LOCK_CONSUMERS = (
    sa.select(consumers.c.uuid, consumers.c.id, consumers.c.generation)
    .where(one_of(consumers.c.uuid, "uuids"))
    .order_by(consumers.c.id)
    .with_for_update()
)


def _lock_consumers(connection: Connection, claims: Sequence[Claim]) -> dict[str, _Held]:
    """Lock the consumers that exist; a name on one that does not is kept for later."""
    held = {claim.consumer_uuid: _Held() for claim in claims}
    by_id = {}
    for uuid, consumer_id, generation in connection.execute(_LOCK_CONSUMERS, {"uuids": list(held)}):
        by_id[consumer_id] = held[uuid] = _Held(consumer_id, generation)
    if by_id:
        for consumer_id, amounts in _amounts(connection, list(by_id)).items():
            by_id[consumer_id].amounts = amounts
    return held


_AMOUNTS = sa.select(
    allocations.c.consumer_id, allocations.c.provider_id, allocations.c.class_id, allocations.c.used
).where(one_of(allocations.c.consumer_id, "ids"))


def _amounts(connection: Connection, consumer_ids: Sequence[int]) -> dict[int, dict[Key, int]]:
    found: dict[int, dict[Key, int]] = defaultdict(dict)
    for consumer_id, provider_id, class_id, used in connection.execute(_AMOUNTS, {"ids": consumer_ids}):
        found[consumer_id][(provider_id, class_id)] = used
    return found


_GAINING, _LOSING = one_of(providers.c.uuid, "gaining"), one_of(providers.c.id, "losing")
_PROVIDERS = sa.select(providers.c.uuid, providers.c.id).order_by(providers.c.id).with_for_update()
_LOCK_GAINING = _PROVIDERS.where(_GAINING)
_LOCK_BOTH = _PROVIDERS.where(_GAINING | _LOSING)


def _lock_providers(
    connection: Connection, claims: Sequence[Claim], held: Mapping[str, _Held]
) -> dict[str, int]:
    """Lock the providers that may gain or lose something; their ids by UUID."""
    gaining = {uuid for claim in claims for uuid in claim.resources}
    losing = {provider_id for consumer in held.values() for provider_id, _ in consumer.amounts}
    if losing:
        return dict(connection.execute(_LOCK_BOTH, {"gaining": gaining, "losing": losing}).all())
    return dict(connection.execute(_LOCK_GAINING, {"gaining": gaining}).all())


def _class_ids(connection: Connection, claims: Sequence[Claim], known: dict[str, int]) -> dict[str, int]:
    wanted = {name for claim in claims for amounts in claim.resources.values() for name in amounts}
    if wanted <= known.keys():
        return known
    found = names.known_class_ids(connection, wanted)
    known |= {name: class_id for name, class_id in found.items() if not names.is_custom(name)}
    return found


def _type_ids(connection: Connection, claims: Sequence[Claim], known: dict[str, int]) -> dict[str, int]:
    """Ids of the consumer types of claims that come true; a type that is new is made."""
    wanted = {claim.type_name for claim in claims if claim.type_name is not None}
    if wanted <= known.keys():
        return known
    query = sa.select(consumer_types.c.name, consumer_types.c.id)
    query = query.where(among(connection, consumer_types.c.name, wanted))
    found = dict(connection.execute(query).all())
    known |= found  # these are committed; one that we make below may yet be rolled back
    if wanted - found.keys():
        new = [{"name": name} for name in sorted(wanted - found.keys())]
        connection.execute(insert_if_absent(connection, consumer_types, key=["name"]), new)
        found = dict(connection.execute(query).all())
    return found


def _inventories(connection: Connection, provider_ids: set[int]) -> dict[Key, Row[Any]]:
    rows = connection.execute(_INVENTORIES, {"ids": provider_ids})
    return {(row.provider_id, row.class_id): row for row in rows}


_INVENTORIES = sa.select(inventories).where(one_of(inventories.c.provider_id, "ids"))


# ---------------------------------------------------------------- what is decided


@dataclass(slots=True)
class _Decision:
    """The locked state, what the requests admitted so far make of it, and how that is written."""

    held: dict[str, _Held]
    provider_ids: Mapping[str, int]
    class_ids: Mapping[str, int]
    type_ids: Mapping[str, int] = field(default_factory=dict)
    inventory: Mapping[Key, Row[Any]] = field(default_factory=dict)
    change: dict[Key, int] = field(default_factory=lambda: defaultdict(int))
    """In the usage of each inventory, by all that was admitted."""
    counted: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """How often each provider's generation goes up."""
    admitted: list[tuple[Claim, dict[Key, int]]] = field(default_factory=list)

    def admit(self, request: ClaimRequest) -> None:
        """Add a request if the state can take it, else raise and leave everything as it was."""
        change: dict[Key, int] = defaultdict(int)
        wanted = []
        for claim in request:
            consumer = self.held[claim.consumer_uuid]
            if claim.generation is not ANY and claim.generation != consumer.generation:
                raise ConsumerGenerationConflict(consumer.generation, claim.generation)
        self._check_names(request)
        for claim in request:
            for key, amount in self.held[claim.consumer_uuid].amounts.items():
                change[key] -= amount
            amounts = dict(self._amounts(claim))
            for key, amount in amounts.items():
                change[key] += amount
            wanted.append((claim, amounts))
        for key in {key for _, amounts in wanted for key in amounts}:
            self._check_capacity(key, change[key])
        self._accept(wanted, change)

    def _check_names(self, request: ClaimRequest) -> None:
        """What does not exist is told before what does not fit: the one is a mistake, the other may pass."""
        for uuid in (uuid for claim in request for uuid in claim.resources):
            if uuid not in self.provider_ids:
                raise UnknownProvider(uuid)
        named = (name for claim in request for amounts in claim.resources.values() for name in amounts)
        for class_name in named:
            if class_name not in self.class_ids:
                raise ClassNotFound(class_name)

    def _amounts(self, claim: Claim) -> Iterable[tuple[Key, int]]:
        for uuid, amounts in claim.resources.items():
            for class_name, amount in amounts.items():
                key = (self.provider_ids[uuid], self.class_ids[class_name])
                row = self.inventory.get(key)
                if row is None:
                    raise InvalidInventory(class_name, uuid)
                if not row.min_unit <= amount <= row.max_unit or amount % row.step_size:
                    raise UnitsViolated(class_name, uuid)
                yield key, amount

    def _check_capacity(self, key: Key, change: int) -> None:
        """Over capacity is fine as long as a request does not make it worse."""
        row = self.inventory[key]
        used = row.used + self.change[key]
        if change > 0 and used + change > (row.total - row.reserved) * row.allocation_ratio:
            class_name = next(name for name, class_id in self.class_ids.items() if class_id == key[1])
            uuid = next(uuid for uuid, provider_id in self.provider_ids.items() if provider_id == key[0])
            raise CapacityExceeded(class_name, uuid)

    def _accept(self, wanted: list[tuple[Claim, dict[Key, int]]], change: Mapping[Key, int]) -> None:
        for key, delta in change.items():
            self.change[key] += delta
        touched = {
            key[0] for claim, amounts in wanted for key in amounts or self.held[claim.consumer_uuid].amounts
        }
        for provider_id in touched:
            self.counted[provider_id] += 1
        self.admitted += wanted

    # ------------------------------------------------------------ what is written

    def write(self, connection: Connection) -> None:
        self._write_consumers(connection)
        rows = [
            (self.held[claim.consumer_uuid].id, *key, amount, utcnow())
            for claim, amounts in self.admitted
            for key, amount in amounts.items()
        ]
        columns = ("consumer_id", "provider_id", "class_id", "used", "created_at")
        bulk.insert(connection, allocations, columns, rows)
        change = {key: delta for key, delta in self.change.items() if delta}
        _add_usage(connection, change)
        counts = sorted(self.counted.items())
        bulk.add(connection, providers, ("id",), "generation", counts, updated_at=utcnow())
        feed.append(connection, feed.ChangeKind.USAGE, sorted({*(key[0] for key in change), *self.counted}))

    def _write_consumers(self, connection: Connection) -> None:
        """Make the new ones, count the change of the others; one that holds nothing any more goes."""
        replaced = [self.held[claim.consumer_uuid].id for claim, _ in self.admitted]
        existing = [consumer_id for consumer_id in replaced if consumer_id is not None]
        if existing:
            connection.execute(
                sa.delete(allocations).where(among(connection, allocations.c.consumer_id, existing))
            )
        emptied = [self.held[claim.consumer_uuid].id for claim, amounts in self.admitted if not amounts]
        if any(emptied):
            connection.execute(
                sa.delete(consumers).where(among(connection, consumers.c.id, filter(None, emptied)))
            )
        holding = [(claim, self.held[claim.consumer_uuid]) for claim, amounts in self.admitted if amounts]
        for claim, consumer in holding:
            if consumer.id is not None:
                self._update_consumer(connection, claim, consumer)
        self._insert_consumers(connection, [claim for claim, consumer in holding if consumer.id is None])

    def _update_consumer(self, connection: Connection, claim: Claim, consumer: _Held) -> None:
        values: dict[str, Any] = {"project_id": claim.project_id, "user_id": claim.user_id}
        if claim.type_name is not None:
            values["type_id"] = self.type_ids[claim.type_name]
        statement = sa.update(consumers).where(consumers.c.id == consumer.id)
        connection.execute(statement.values(generation=consumers.c.generation + 1, **values))

    def _insert_consumers(self, connection: Connection, claims: Sequence[Claim]) -> None:
        """One that somebody else made since we looked makes the database raise: then all is tried again."""
        if not claims:
            return
        rows = [
            (
                claim.consumer_uuid,
                claim.project_id,
                claim.user_id,
                1,
                None if claim.type_name is None else self.type_ids[claim.type_name],
            )
            for claim in sorted(claims, key=lambda claim: claim.consumer_uuid)
        ]
        columns = ("uuid", "project_id", "user_id", "generation", "type_id")
        for uuid, consumer_id in bulk.insert_numbered(connection, consumers, columns, rows).items():
            self.held[uuid].id = consumer_id


def _add_usage(connection: Connection, change: Mapping[Key, int]) -> None:
    rows = [(*key, delta) for key, delta in sorted(change.items())]
    bulk.add(connection, inventories, ("provider_id", "class_id"), "used", rows)
