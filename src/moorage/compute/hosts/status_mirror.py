"""Whether a host is disabled, told to Placement at once: the nodes of disabled hosts carry a trait.

Agents tell it too, but hear of a change only with their next heartbeat; until then a host that was just
enabled would get no servers. A delayed write is undone: whoever has written looks whether our database still
says the same, and a conductor looks once more after a while, in case the writer died in between.
"""

from __future__ import annotations

import logging
from datetime import timedelta

import sqlalchemy as sa
from prometheus_client import Counter
from sqlalchemy.engine import Connection

from moorage.compute.hosts import backlog
from moorage.compute.hosts.backlog import BacklogKind
from moorage.compute.hosts.services import AGENT
from moorage.db.database import Database
from moorage.db.tables.compute import IS_PLACE, nodes, services
from moorage.placement.client.contract import (
    PlacementClient,
    PlacementRefusedError,
    PlacementUnavailableError,
)
from moorage.scheduler.prefilters.enabled_hosts import DISABLED_TRAIT

LOG = logging.getLogger(__name__)
FAILURES = Counter("moorage_status_failures_total", "Times that Placement could not be told of a status.")

LOOK_AGAIN = timedelta(minutes=2)
"""Longer than a request to Placement takes that was sent before."""
MOST_NODES = 500
"""So many nodes of a host are told of, since an operator waits; the others are its agent's matter."""
_MOST_ROUNDS = 8
PROBLEMS = (PlacementUnavailableError, PlacementRefusedError)


class StatusMirror:
    def __init__(self, database: Database, placement: PlacementClient) -> None:
        self._database = database
        self._placement = placement

    def follow(self, host: str) -> None:
        """A host was enabled or disabled just now; its operator is not kept from it by Placement."""
        try:
            self.settle(host)
        except PROBLEMS as error:
            FAILURES.inc()
            LOG.warning("Placement does not know yet whether host %s is disabled: %s", host, error)
            said = str(error)
            self._database.transact(
                lambda connection: backlog.add(
                    connection, BacklogKind.STATUS, [host], backlog.FIRST_PAUSE, said
                )
            )

    def settle(self, host: str) -> None:
        """Make the traits of a host's nodes say what our database says; raises one of `PROBLEMS`."""
        disabled = self._is_disabled(host)
        for _ in range(_MOST_ROUNDS):
            if disabled is None:  # the host is forgotten, and so are its nodes
                return
            with self._database.read() as connection:
                found = _nodes_of(connection, host)
            self._placement.set_trait(found, DISABLED_TRAIT, present=disabled)
            written, disabled = disabled, self._is_disabled(host)
            if disabled == written:
                return
        raise PlacementUnavailableError(f"host {host} is enabled and disabled again and again")

    def _is_disabled(self, host: str) -> bool | None:
        query = sa.select(services.c.disabled).where(services.c.host == host, services.c.binary == AGENT)
        with self._database.read() as connection:
            return connection.execute(query).scalar_one_or_none()


def note(connection: Connection, host: str) -> None:
    """In the transaction that enables or disables a host: it shall be looked at once more."""
    backlog.add(connection, BacklogKind.STATUS, [host], LOOK_AGAIN, "")


def _nodes_of(connection: Connection, host: str) -> list[str]:
    query = sa.select(nodes.c.uuid).where(nodes.c.host == host, IS_PLACE).order_by(nodes.c.uuid)
    return list(connection.execute(query.limit(MOST_NODES)).scalars())
