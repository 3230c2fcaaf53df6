"""Machines that are gone for good under their servers: nothing can be done with these but to delete them."""

from __future__ import annotations

import logging
from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.servers import servers as records
from moorage.compute.servers.fault import fault
from moorage.compute.servers.server import Server
from moorage.compute.servers.server_errors import MachineLost
from moorage.compute.servers.states import PowerNumber, VmState
from moorage.db.among import among
from moorage.db.tables.compute import operations, servers

LOG = logging.getLogger(__name__)

LOST = "machine_lost"
"""In the request of a server: its machine is there no more."""
IS_LOST = servers.c.request[LOST].as_boolean().is_(True)


def require_machine(server: Server) -> None:
    if server.request.get(LOST):
        raise MachineLost(server.uuid)


def lose_on_nodes(connection: Connection, node_uuids: Collection[str]) -> None:
    """The nodes exist no more; servers that something is being done to are left for another time."""
    if node_uuids:
        _lose(connection, among(connection, servers.c.node_uuid, node_uuids))


def lose(connection: Connection, host: str, server_uuids: Collection[str]) -> None:
    """The machines of these servers, which a host chose by itself, exist no more."""
    if server_uuids:
        _lose(connection, among(connection, servers.c.uuid, server_uuids) & (servers.c.host == host))


def lose_missing(connection: Connection, host: str, server_uuid: str) -> None:
    """A host does not have the server that should be there, and an operator has it told so."""
    missing = (servers.c.uuid == server_uuid) & (servers.c.host == host)
    _lose(connection, missing, f"Host {host} does not have the server.")


def find_again(connection: Connection, server: Server) -> None:
    """It was seen, or an administrator knows better."""
    if server.request.get(LOST):
        request = {name: value for name, value in server.request.items() if name != LOST}
        records.update(connection, server.id, request=request)


def _lose(connection: Connection, condition: sa.ColumnElement[bool], why: str = "") -> None:
    busy = sa.exists().where(operations.c.server_id == servers.c.id, operations.c.finished_at.is_(None))
    query = (
        sa.select(servers.c.id, servers.c.uuid, servers.c.node_uuid, servers.c.host, servers.c.request)
        .where(condition, servers.c.deleted_at.is_(None), ~busy, ~sa.func.coalesce(IS_LOST, sa.false()))
        .order_by(servers.c.id)
        .with_for_update()
    )
    for row in connection.execute(query).all():
        details = why or f"Ironic has no machine any more for node {row.node_uuid} of host {row.host}."
        LOG.error("the machine of server %s is gone: %s", row.uuid, details)
        records.set_state(
            connection,
            row.id,
            vm_state=VmState.ERROR,
            task_state=None,
            power_state=int(PowerNumber.NONE),
            fault=fault("The machine that the server was on does not exist any more.", details=details),
            request={**row.request, LOST: True},
        )
