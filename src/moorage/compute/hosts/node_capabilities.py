"""What can be asked of the nodes that we know, as their agents said; also of agents too old to say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.tables.compute import nodes
from moorage.drivers.capabilities import CAPABILITIES, Capabilities

_OLD_BARE_METAL, _OLD_POOL = "ironic", "ironic-pool"
"""The types by which nodes of agents are known that don't say what they can."""


def read(hypervisor_type: str, facts: Mapping[str, Any]) -> Capabilities:
    said = facts.get(CAPABILITIES)
    return _of_old_agent(hypervisor_type) if said is None else msgspec.convert(said, Capabilities)


def of_node(connection: Connection, node_uuid: str) -> Capabilities:
    """Nothing can be asked of a node that is not there."""
    query = sa.select(nodes.c.hypervisor_type, nodes.c.facts).where(nodes.c.uuid == node_uuid)
    found = connection.execute(query).one_or_none()
    return Capabilities() if found is None else read(*found)


def is_pool() -> sa.ColumnElement[bool]:
    said = nodes.c.facts[(CAPABILITIES, "pool")].as_boolean()
    return sa.func.coalesce(said, nodes.c.hypervisor_type == _OLD_POOL)


def _of_old_agent(hypervisor_type: str) -> Capabilities:
    """What the drivers of that release had parts for."""
    metal = hypervisor_type in (_OLD_BARE_METAL, _OLD_POOL)
    return Capabilities(
        binds_ports=metal,
        pool=hypervisor_type == _OLD_POOL,
        rebuild=True,
        migrate=not metal,
        live_migrate=not metal,
        change_interfaces=True,
    )
