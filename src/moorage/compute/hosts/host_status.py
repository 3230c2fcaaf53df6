"""How the host of a server is, in the API's words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.hosts import liveness
from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.db.among import among
from moorage.db.tables.compute import services

UP = "UP"
DOWN = "DOWN"
MAINTENANCE = "MAINTENANCE"
UNKNOWN = "UNKNOWN"
NO_HOST = ""


def of_hosts(connection: Connection, hosts: Iterable[str | None], down_time: int) -> dict[str | None, str]:
    """The status of each host; a server without a host has none."""
    named = {host for host in hosts if host}
    found: dict[str | None, str] = dict.fromkeys(named, UNKNOWN)
    found[None] = NO_HOST
    if not named:
        return found
    query = sa.select(services.c.host, services.c.disabled, services.c.forced_down, services.c.seen_at).where(
        services.c.binary == AGENT_BINARY, among(connection, services.c.host, named)
    )
    down_after = timedelta(seconds=down_time)
    for host, disabled, forced_down, seen_at in connection.execute(query):
        if forced_down:
            found[host] = DOWN
        elif not liveness.was_heard(seen_at, down_after):
            found[host] = UNKNOWN
        else:
            found[host] = MAINTENANCE if disabled else UP
    return found
