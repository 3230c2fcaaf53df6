"""The register of services: a heartbeat keeps a process's entry fresh, and makes it if there is none."""

from __future__ import annotations

from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.tables.compute import services
from moorage.db.upsert import insert_if_absent

AGENT_BINARY = "nova-compute"
"""The name by which clients know an agent."""
BEFORE_THE_AGENT = 0
"""The version of a host whose agent has not come yet."""
CONDUCTOR_BINARY = "nova-conductor"
"""The name by which they know a conductor, which is the scheduler too: see docs/compute/api.md."""


class RegistryEntry(NamedTuple):
    new: bool
    disabled: bool
    forced_down: bool = False


def heartbeat(
    connection: Connection, host: str, binary: str, *, version: int, facts: dict[str, Any]
) -> RegistryEntry:
    """Write down that a service lives; answers with what is known of it."""
    said = {"version": version, "facts": facts, "seen_at": utcnow()}
    known = sa.and_(services.c.host == host, services.c.binary == binary)
    updated = connection.execute(
        sa.update(services).where(known).values(**said).returning(services.c.disabled, services.c.forced_down)
    ).first()
    if updated is not None:
        return RegistryEntry(new=False, disabled=updated.disabled, forced_down=updated.forced_down)
    new = insert_if_absent(connection, services, key=["host", "binary"])
    connection.execute(new.values(uuid=uuids.generate(), host=host, binary=binary, **said))
    return RegistryEntry(new=True, disabled=False)
