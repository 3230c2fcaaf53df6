"""Refreshing: what servers' rows say of their ports, made what the network service says.

After events, within seconds; and now and then for all servers, for what no event told.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

import msgspec
import sqlalchemy as sa
from prometheus_client import Counter
from sqlalchemy.engine import Connection

from moorage.compute.ports import changed_ports, interfaces, shown_addresses
from moorage.compute.servers.server import Server
from moorage.conductor.chores import chores
from moorage.core.periodic import Periodic
from moorage.db.database import Database
from moorage.db.tables.compute import operations, servers
from moorage.network.contract import Network, PortRecord, ServerPorts

REFRESHED = Counter("moorage_network_refreshed_total", "Servers whose ports had changed.")
CHANGED = "ports that changed"
EVERYTHING = "ports of everything"
_TICK = 2.0
_LEASE = timedelta(minutes=5)
_CHUNK = 40


class Refreshing:
    def __init__(self, database: Database, network: Network, interval: int) -> None:
        """`interval` is the number of seconds between two looks at everything; 0 for none."""
        self._database = database
        self._network = network
        self._interval = interval
        self._ticks = Periodic("refreshing ports", _TICK, self._tick)

    def start(self) -> None:
        self._ticks.start()

    def stop(self) -> None:
        self._ticks.stop()

    def _tick(self) -> None:
        with self._database.read() as connection:
            waiting = changed_ports.of_servers_at_rest(connection)
        if waiting and self._claim(CHANGED, timedelta(0)):
            try:
                self.refresh(list(waiting))
                self._database.transact(lambda connection: changed_ports.forget(connection, waiting))
            finally:
                self._finish(CHANGED)
        if self._interval and self._claim(EVERYTHING, timedelta(seconds=self._interval)):
            try:
                self.refresh(self._running_servers())
            finally:
                self._finish(EVERYTHING)

    def _claim(self, name: str, every: timedelta) -> bool:
        return self._database.transact(
            lambda connection: chores.claim(connection, name, every=every, lease=_LEASE)
        )

    def _finish(self, name: str) -> None:
        self._database.transact(lambda connection: chores.finish(connection, name))

    def _running_servers(self) -> Sequence[str]:
        query = sa.select(servers.c.uuid).where(servers.c.host.is_not(None), servers.c.deleted_at.is_(None))
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(servers.c.id)).scalars())

    def refresh(self, server_uuids: Sequence[str]) -> None:
        for start in range(0, len(server_uuids), _CHUNK):
            self._refresh_some(server_uuids[start : start + _CHUNK])

    def _refresh_some(self, server_uuids: Collection[str]) -> None:
        with self._database.read() as connection:
            found = changed_ports.servers_among(connection, server_uuids)
        holdings = [ServerPorts.of(server.uuid, server.request) for server in found]
        for server, holding, ports in zip(found, holdings, self._network.look(holdings), strict=True):
            if ports != holding.ports:
                self._write(server, ports)

    def _write(self, server: Server, ports: list[PortRecord]) -> None:
        """Unless an operation has begun on the server, or has changed what we compared with.

        A port that is gone has to go from the server's host, too.
        """
        left = {port.id for port in ports}
        gone = [port["id"] for port in server.request.get("ports", []) if port["id"] not in left]

        def write(connection: Connection) -> bool:
            query = sa.select(servers.c.request).where(servers.c.id == server.id).with_for_update()
            request = connection.execute(query).scalar_one()
            unfinished = sa.select(operations.c.id).where(
                operations.c.server_id == server.id, operations.c.finished_at.is_(None)
            )
            if request != server.request or connection.execute(unfinished).first() is not None:
                return False
            if gone and interfaces.can_lose(server):
                interfaces.lose(connection, server.id, gone)
                return True
            connection.execute(
                sa.update(servers)
                .where(servers.c.id == server.id)
                .values(
                    request={**request, "ports": msgspec.to_builtins(ports)},
                    addresses=shown_addresses.addresses(ports),
                )
            )
            return True

        if self._database.transact(write):
            REFRESHED.inc()
