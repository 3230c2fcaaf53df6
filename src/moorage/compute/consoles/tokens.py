"""Tokens: the right to open the console of one server, where it was when the token was made.

The server decides whether a token is good: once it is deleted or on another host, none of its tokens is, and
no step of any operation has to remember to take them back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import timedelta
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.servers.server import Server
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.tables.compute import servers
from moorage.db.tables.consoles import console_tokens
from moorage.drivers.parts import ConsoleAddress, ConsoleType

_KEPT_AFTER_USE = timedelta(minutes=10)
"""How long after its last sign a connection counts as open: so much longer than proxies need between two."""


class ConsoleGrant(msgspec.Struct, frozen=True):
    """What a token is good for."""

    id: int
    server_uuid: str
    server_host: str
    node_uuid: str
    console_type: ConsoleType
    address: ConsoleAddress
    base_url: str
    """Of the page that may use it."""


def issue(
    connection: Connection,
    server: Server,
    console_type: ConsoleType,
    address: ConsoleAddress,
    *,
    base_url: str,
    seconds: int,
) -> str:
    """A new token, which is written down only as its hash. Those that are of no more use are forgotten."""
    _forget_old(connection)
    token = uuids.generate()
    row = {
        "token_hash": _hash(token),
        "server_id": server.id,
        "server_host": server.host,
        "node_uuid": server.on_node,
        "console_type": str(console_type),
        "address": address.host,
        "port": address.port,
        "path": address.path,
        "base_url": base_url,
        "expires_at": utcnow() + timedelta(seconds=seconds),
    }
    connection.execute(sa.insert(console_tokens).values(row))
    return token


def find(connection: Connection, token: str) -> ConsoleGrant | None:
    """What a token is good for now, if it is good for anything."""
    query = (
        sa.select(console_tokens, servers.c.uuid)
        .join_from(console_tokens, servers)
        .where(
            console_tokens.c.token_hash == _hash(token), console_tokens.c.expires_at > utcnow(), _is_there()
        )
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else _grant(row)


def still_good(connection: Connection, ids: Collection[int]) -> set[int]:
    """Those of the tokens whose connections may go on; they may have expired since they were opened."""
    query = (
        sa.select(console_tokens.c.id)
        .join_from(console_tokens, servers)
        .where(among(connection, console_tokens.c.id, ids), _is_there())
    )
    return set(connection.execute(query).scalars())


def keep(connection: Connection, ids: Collection[int]) -> None:
    """These are in use, so that they are not forgotten."""
    used = sa.update(console_tokens).where(among(connection, console_tokens.c.id, ids))
    connection.execute(used.values(used_at=utcnow()))


def revoke(connection: Connection, server_uuid: str) -> int | None:
    """Close the consoles of a server to all who have a token; how many tokens there were, None if there is
    no such server."""
    known = sa.select(servers.c.id).where(servers.c.uuid == server_uuid, servers.c.deleted_at.is_(None))
    server_id = connection.execute(known).scalar_one_or_none()
    if server_id is None:
        return None
    gone = sa.delete(console_tokens).where(console_tokens.c.server_id == server_id)
    return int(connection.execute(gone).rowcount)


def revoke_all(connection: Connection) -> None:
    """After a restore: some were taken back since the backup, and nobody knows which."""
    connection.execute(sa.delete(console_tokens))


def _forget_old(connection: Connection) -> None:
    now = utcnow()
    unused = sa.or_(console_tokens.c.used_at.is_(None), console_tokens.c.used_at < now - _KEPT_AFTER_USE)
    connection.execute(sa.delete(console_tokens).where(console_tokens.c.expires_at <= now, unused))


def _is_there() -> sa.ColumnElement[bool]:
    """Whether the server of a token is, and is still where it was."""
    return sa.and_(
        servers.c.deleted_at.is_(None),
        servers.c.host == console_tokens.c.server_host,
        servers.c.node_uuid == console_tokens.c.node_uuid,
    )


def _grant(row: sa.Row[Any]) -> ConsoleGrant:
    return ConsoleGrant(
        id=row.id,
        server_uuid=row.uuid,
        server_host=row.server_host,
        node_uuid=row.node_uuid,
        console_type=ConsoleType(row.console_type),
        address=ConsoleAddress(row.address, row.port, row.path),
        base_url=row.base_url,
    )


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
