"""Ports that were made too late: by a request that hung until somebody had asked again, or had deleted the
server. The network service can't refuse them; they have our mark, and no server's row knows them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta

import sqlalchemy as sa
from prometheus_client import Counter

from moorage.conductor.chores import chores
from moorage.core.clock import utcnow
from moorage.core.periodic import Periodic
from moorage.db.among import among
from moorage.db.database import Database
from moorage.db.tables.compute import operations, servers
from moorage.network.contract import (
    Network,
    NetworkAccess,
    NetworkError,
    NetworkUnavailableError,
    ServerPorts,
)

LOG = logging.getLogger(__name__)

SWEPT = Counter("moorage_network_late_ports_total", "Ports that were made too late, and deleted.")
CHORE = "late ports"
_TICK = 30.0
_EVERY = timedelta(minutes=5)
_LATEST = timedelta(minutes=15)
"""How long after its operation a server's ports are looked at: no request hangs for longer."""
_LEASE = timedelta(minutes=5)
_CHUNK = 40


def drop(network: Network, holdings: Sequence[ServerPorts]) -> None:
    """Of servers whose ports nobody else makes now. What can't be done now is left to the chore."""
    try:
        for holding, late in zip(holdings, network.strays(holdings), strict=True):
            _drop(network, holding, late)
    except (NetworkError, NetworkUnavailableError) as error:
        LOG.warning("ports that were made too late stay for now: %s", error)


def _drop(network: Network, holding: ServerPorts, port_ids: Sequence[str]) -> None:
    for port_id in port_ids:
        LOG.warning("port %s of server %s was made too late", port_id, holding.server_uuid)
        network.drop(holding, port_id)
        SWEPT.inc()


class LatePorts:
    """Looks at the ports of servers that something was done to lately, also of those that are deleted."""

    def __init__(self, database: Database, network: Network) -> None:
        self._database = database
        self._network = network
        self._ticks = Periodic("late ports", _TICK, self._tick)

    def start(self) -> None:
        if self._network.reach is NetworkAccess.ANYONE:
            self._ticks.start()

    def stop(self) -> None:
        self._ticks.stop()

    def _tick(self) -> None:
        mine = self._database.transact(
            lambda connection: chores.claim(connection, CHORE, every=_EVERY, lease=_LEASE)
        )
        if mine:
            try:
                self.sweep(self._changed_lately())
            finally:
                self._database.transact(lambda connection: chores.finish(connection, CHORE))

    def _changed_lately(self) -> Sequence[str]:
        lately = operations.c.finished_at > utcnow() - _LATEST
        query = sa.select(servers.c.uuid).where(
            sa.exists().where(operations.c.server_id == servers.c.id, lately)
        )
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(servers.c.id)).scalars())

    def sweep(self, server_uuids: Sequence[str]) -> None:
        for start in range(0, len(server_uuids), _CHUNK):
            self._sweep_some(server_uuids[start : start + _CHUNK])

    def _sweep_some(self, server_uuids: Sequence[str]) -> None:
        """First what is there, then who knows of it: else it could be what an operation has just made."""
        try:
            listed = self._network.strays([ServerPorts(uuid, []) for uuid in server_uuids])
            found = {uuid: ports for uuid, ports in zip(server_uuids, listed, strict=True) if ports}
            for holding in self._at_rest(list(found)):
                known = {port.id for port in holding.ports} | holding.brought
                late = [port for port in found[holding.server_uuid] if port not in known]
                _drop(self._network, holding, late)
        except (NetworkError, NetworkUnavailableError) as error:
            LOG.warning("ports that were made too late stay for now: %s", error)

    def _at_rest(self, server_uuids: Sequence[str]) -> list[ServerPorts]:
        """Those that no operation is at."""
        busy = sa.exists().where(operations.c.server_id == servers.c.id, operations.c.finished_at.is_(None))
        with self._database.read() as connection:
            query = sa.select(servers.c.uuid, servers.c.request).where(
                among(connection, servers.c.uuid, server_uuids), ~busy
            )
            return [ServerPorts.of(uuid, request) for uuid, request in connection.execute(query)]
