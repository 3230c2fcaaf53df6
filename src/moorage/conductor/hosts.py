"""What the conductor knows of hosts: which are up, and the state of the nodes that a decision is about."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from functools import lru_cache

import msgspec
import sqlalchemy as sa

from moorage.compute.known_aggregates import KnownAggregates
from moorage.conductor import ownership
from moorage.conductor.registry import AGENT_BINARY
from moorage.core.clock import utcnow
from moorage.db.among import one_of
from moorage.db.database import Database
from moorage.db.tables.compute import IS_PLACE, nodes, servers, services
from moorage.drivers.ironic.inventory import HYPERVISOR_TYPE as BARE_METAL
from moorage.drivers.ironic.pool import HYPERVISOR_TYPE as POOL
from moorage.scheduler.hosts import HostState

_HERE = (
    sa.select(servers.c.node_uuid, sa.func.count().label("count"))
    .where(one_of(servers.c.node_uuid, "uuids"), servers.c.deleted_at.is_(None))
    .group_by(servers.c.node_uuid)
    .subquery()
)
_CHOSEN = (
    sa.select(
        nodes.c.uuid,
        nodes.c.name,
        nodes.c.host,
        nodes.c.hypervisor_type,
        sa.cast(nodes.c.facts, sa.Text).label("facts"),
        nodes.c.build_failures,
    )
    .where(one_of(nodes.c.uuid, "uuids"), IS_PLACE)
    .cte("chosen")
    .prefix_with("MATERIALIZED", dialect="postgresql")
)
"""Before anything is joined: PostgreSQL, as long as it has not counted a new table, would go through all the
nodes of every host."""
_STATES = (
    sa.select(
        *_CHOSEN.c,
        services.c.seen_at,
        services.c.forced_down,
        services.c.disabled,
        sa.cast(services.c.facts, sa.Text).label("host_facts"),
        sa.func.coalesce(_HERE.c.count, 0).label("servers"),
    )
    .join_from(_CHOSEN, services, (services.c.host == _CHOSEN.c.host) & (services.c.binary == AGENT_BINARY))
    .outerjoin(_HERE, _HERE.c.node_uuid == _CHOSEN.c.uuid)
)


class Hosts:
    def __init__(
        self, database: Database, aggregates: KnownAggregates, *, down_after: int, default_zone: str
    ) -> None:
        self._database = database
        self._aggregates = aggregates
        self._down_after = timedelta(seconds=down_after)
        self._default_zone = default_zone

    def up(self) -> set[str]:
        """The hosts whose agents are alive and not declared dead."""
        query = sa.select(services.c.host).where(
            services.c.binary == AGENT_BINARY,
            services.c.seen_at > utcnow() - self._down_after,
            services.c.forced_down.is_(False),
        )
        with self._database.read() as connection:
            return set(connection.execute(query).scalars())

    def address(self, node_uuid: str) -> str | None:
        """Where a node can be reached, if it says so."""
        query = sa.select(nodes.c.facts).where(nodes.c.uuid == node_uuid)
        with self._database.read() as connection:
            facts = connection.execute(query).scalar_one_or_none() or {}
        return facts.get("host_ip")

    def has_heir(self, host: str) -> bool:
        """Whether a host that lives shares nodes with this one, and takes over servers."""
        with self._database.read() as connection:
            return ownership.has_heir(connection, host, self._down_after)

    def states(self, node_uuids: Collection[str]) -> dict[str, HostState]:
        """Of the nodes that we know, by UUID."""
        alive_since = utcnow() - self._down_after
        facts = self._aggregates.facts()
        with self._database.read() as connection:
            rows = connection.execute(_STATES, {"uuids": list(node_uuids)}).all()
        return {
            row.uuid: HostState(
                host=row.host,
                node=row.name,
                node_uuid=row.uuid,
                up=not row.forced_down and row.seen_at is not None and row.seen_at > alive_since,
                disabled=row.disabled,
                zone=facts.zone_of.get(row.host, self._default_zone),
                aggregates=facts.of_host.get(row.host, frozenset()),
                hypervisor_type=row.hypervisor_type,
                pool=row.hypervisor_type == POOL,
                binds_ports=row.hypervisor_type in (POOL, BARE_METAL),
                supported=_supported(row.facts),
                servers=row.servers,
                build_failures=row.build_failures,
                cell=_cell(row.host_facts),
            )
            for row in rows
        }


@lru_cache(maxsize=4096)
def _supported(facts: str) -> tuple[tuple[str, str, str], ...]:
    """Most nodes say the same of themselves, in the same words: they are read once."""
    listed = msgspec.json.decode(facts).get("supported_instances", ())
    return tuple((str(machine), str(hypervisor), str(mode)) for machine, hypervisor, mode in listed)


@lru_cache(maxsize=4096)
def _cell(facts: str) -> str:
    return str(msgspec.json.decode(facts).get("cell", ""))
