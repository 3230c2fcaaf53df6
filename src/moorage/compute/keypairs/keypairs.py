"""Key pairs: public keys that users have put here, or had made here."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError, ConflictError, NotFoundError
from moorage.compute.quotas.overruns import require_room
from moorage.compute.quotas.quotas import Limits
from moorage.db import lock
from moorage.db.order import by_character
from moorage.db.tables.compute import keypairs


@dataclass(frozen=True)
class Keypair:
    id: int
    user_id: str
    name: str
    type: str
    public_key: str
    fingerprint: str
    created_at: datetime


_COLUMNS = tuple(keypairs.c[field.name] for field in fields(Keypair))


def find(connection: Connection, user_id: str, name: str) -> Keypair:
    query = sa.select(*_COLUMNS).where(keypairs.c.user_id == user_id, keypairs.c.name == name)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFoundError(f"Keypair {name} not found for user {user_id}")
    return Keypair(*row)


def listed(
    connection: Connection, user_id: str, marker: str | None = None, limit: int | None = None
) -> list[Keypair]:
    """A user's, in the order of their names; those after `marker`."""
    query = sa.select(*_COLUMNS).where(keypairs.c.user_id == user_id).order_by(by_character(keypairs.c.name))
    found = [Keypair(*row) for row in connection.execute(query)]
    if marker is not None:
        names = [keypair.name for keypair in found]
        if marker not in names:
            raise ComputeError(f"Marker {marker} could not be found.")
        found = found[names.index(marker) + 1 :]
    return found[:limit]


def add(
    connection: Connection,
    user_id: str,
    name: str,
    kind: str,
    public_key: str,
    fingerprint: str,
    limits: Limits,
) -> Keypair:
    lock.by_name(connection, f"keypairs of {user_id}")
    query = sa.select(keypairs.c.name).where(keypairs.c.user_id == user_id)
    names = set(connection.execute(query).scalars())
    require_room(limits, "key_pairs", len(names), 1, "Quota exceeded, too many key pairs.")
    if name in names:
        raise ConflictError(f"Key pair '{name}' already exists.")
    connection.execute(
        sa.insert(keypairs).values(
            user_id=user_id, name=name, type=kind, public_key=public_key, fingerprint=fingerprint
        )
    )
    return find(connection, user_id, name)


def delete(connection: Connection, user_id: str, name: str) -> None:
    gone = (
        sa.delete(keypairs)
        .where(keypairs.c.user_id == user_id, keypairs.c.name == name)
        .returning(keypairs.c.id)
    )
    if connection.execute(gone).one_or_none() is None:
        raise NotFoundError(f"Keypair {name} not found for user {user_id}")
