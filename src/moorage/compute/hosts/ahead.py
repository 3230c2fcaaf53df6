"""Hosts that know of more than the database: it went back, and nobody has said so.

Whoever restores a database says `moorage-manage db restored`. Without that, hosts ignore work with numbers
that they have seen before, and servers wait for ever.
"""

from __future__ import annotations

from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.bus.contract import ERA, NEWEST_OPERATION
from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.db import bulk, era
from moorage.db.tables.compute import operations, services
from moorage.db.tables.eras import FIRST

REMEDY = "say `moorage-manage db restored`"


class AheadHost(msgspec.Struct, frozen=True):
    host: str
    knows: str
    """What it has heard of, and the database has not."""

    def __str__(self) -> str:
        return (
            f"host {self.host} knows of {self.knows}: the database went back, and hosts ignore what it has "
            f"them do; {REMEDY}"
        )


def find(connection: Connection) -> list[AheadHost]:
    """By what their last heartbeats say; agents of older releases don't."""
    now, given_out = era.current(connection).number, bulk.last_number(connection, operations)
    query = sa.select(services.c.host, services.c.facts).where(services.c.binary == AGENT_BINARY)
    found = ((host, _beyond(facts, now, given_out)) for host, facts in connection.execute(query))
    return [AheadHost(host, knows) for host, knows in sorted(found) if knows]


def _beyond(facts: dict[str, Any], now: int, given_out: int) -> str:
    known, newest = int(facts.get(ERA, FIRST)), int(facts.get(NEWEST_OPERATION, 0))
    if known > now:
        return f"era {known} of the database, which is in era {now}"
    if known == now and newest > given_out:
        return f"operation {newest}, while the database has given out {given_out}"
    return ""
