"""What the conductor knows of hosts: which are up, and the state of the nodes that a decision is about."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.compute.hosts import liveness, node_capabilities, peers
from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.db.database import Database
from moorage.db.probe import Probe, as_text
from moorage.db.tables.compute import SHARED_CAPACITY, nodes
from moorage.drivers.capabilities import Capabilities
from moorage.scheduler.aggregates import AggregateFacts
from moorage.scheduler.hosts import HostState

_STATES = f"""
WITH n AS {{first}} (
    SELECT uuid, name, host, hypervisor_type, facts, build_failures FROM nodes
    WHERE uuid {{among_them}} AND hypervisor_type <> '{SHARED_CAPACITY}'
)
SELECT n.uuid, n.name, n.host, n.hypervisor_type, n.facts, n.build_failures, s.facts,
       CASE WHEN {liveness.IS_UP} THEN 1 ELSE 0 END,
       CASE WHEN s.disabled THEN 1 ELSE 0 END,
       (SELECT count(*) FROM servers AS v WHERE v.node_uuid = n.uuid AND v.deleted_at IS NULL)
FROM n JOIN services AS s ON s.host = n.host AND s.binary = '{AGENT_BINARY}'
"""
"""The nodes come first: PostgreSQL, as long as it has not counted a new table, would go through all the nodes
of every host."""


class Hosts:
    def __init__(
        self, database: Database, aggregates: KnownAggregates, *, down_after: int, default_zone: str
    ) -> None:
        self._database = database
        self._aggregates = aggregates
        self._down_after = timedelta(seconds=down_after)
        self._default_zone = default_zone
        self._states = Probe(
            database.engine,
            postgresql=_STATES.format(
                first="MATERIALIZED",
                among_them="= ANY (ARRAY(SELECT json_array_elements_text($1::text::json)))",
                alive_since="$2::text::timestamptz",
            ),
            sqlite=_STATES.format(
                first="", among_them="IN (SELECT value FROM json_each(?1))", alive_since="?2"
            ),
        )

    def up(self) -> set[str]:
        """The hosts whose agents are alive and not declared dead."""
        with self._database.read() as connection:
            return liveness.hosts_up(connection, self._down_after)

    def address(self, node_uuid: str) -> str | None:
        """Where a node can be reached, if it says so."""
        query = sa.select(nodes.c.facts).where(nodes.c.uuid == node_uuid)
        with self._database.read() as connection:
            facts = connection.execute(query).scalar_one_or_none() or {}
        return facts.get("host_ip")

    def capabilities(self, node_uuid: str) -> Capabilities:
        """What can be asked of a node; nothing of one that is not there."""
        with self._database.read() as connection:
            return node_capabilities.of_node(connection, node_uuid)

    def has_live_peer(self, host: str) -> bool:
        """Whether a host that lives shares nodes with this one, and takes over servers."""
        with self._database.read() as connection:
            return peers.has_live_peer(connection, host, self._down_after)

    def states(
        self, node_uuids: Collection[str], facts: AggregateFacts | None = None
    ) -> dict[str, HostState]:
        """Of the nodes that we know, by UUID; `facts` are for who has asked for them already."""
        alive_since = liveness.alive_since(self._down_after)
        facts = facts or self._aggregates.facts()
        wanted = msgspec.json.encode(list(node_uuids)).decode()
        found = {}
        for row in self._states.rows(wanted, as_text(alive_since)):
            uuid, node, host, kind, node_facts, failures, host_facts, up, disabled, count = row
            said = _said(kind, node_facts)
            found[uuid] = HostState(
                host=host,
                node=node,
                node_uuid=uuid,
                up=up == "1",
                disabled=disabled == "1",
                zone=facts.zone_of.get(host, self._default_zone),
                aggregates=facts.of_host.get(host, frozenset()),
                hypervisor_type=kind,
                pool=said.pool,
                binds_ports=said.binds_ports,
                starts_paused=said.starts_paused,
                resizes_in_place=said.resizes_in_place,
                supported=said.supported,
                servers=int(count),
                build_failures=int(failures),
                cell=_cell(host_facts),
            )
        return found


class _Said(NamedTuple):
    """What a node says of itself."""

    supported: tuple[tuple[str, str, str], ...]
    pool: bool
    binds_ports: bool
    starts_paused: bool
    resizes_in_place: bool


@lru_cache(maxsize=4096)
def _said(hypervisor_type: str, facts: str) -> _Said:
    """Most nodes say the same of themselves, in the same words: they are read once."""
    said = msgspec.json.decode(facts)
    listed = said.get("supported_instances", ())
    supported = tuple((str(machine), str(hypervisor), str(mode)) for machine, hypervisor, mode in listed)
    can = node_capabilities.read(hypervisor_type, said)
    return _Said(supported, can.pool, can.binds_ports, can.starts_paused, can.resize_in_place)


@lru_cache(maxsize=4096)
def _cell(facts: str) -> str:
    return str(msgspec.json.decode(facts).get("cell", ""))
