"""Reservations: which machine is set aside for which server, and through which host's pool.

Ironic keeps them (it calls them allocations), so that nobody forgets one: a reservation has the server's
UUID, and says itself which pool it was made through.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from moorage.drivers.ironic.api.record import ReservationRecord
from moorage.drivers.ironic.nodes import inventory
from moorage.drivers.ironic.nodes.node_lease import NodeLease

_MARK = "moorage"


class Reservation(NamedTuple):
    server_uuid: str
    pool_uuid: str
    home: str
    """The host whose pool it is, whoever looks after it now."""
    node_uuid: str | None
    resource_class: str
    """As Placement writes it."""
    shared_in: str = ""
    """The provider of what several hosts share, if the server has its machine from there in Placement."""


def marks(pool_uuid: str, home: str, shared_in: str = "") -> dict[str, Any]:
    """What a reservation of ours says of itself."""
    return {_MARK: {"node": pool_uuid, "host": home, "shared_in": shared_in}}


def read(record: ReservationRecord) -> Reservation | None:
    """None if somebody else made it."""
    said = record.extra.get(_MARK)
    if not isinstance(said, dict) or not said.get("node"):
        return None
    return Reservation(
        server_uuid=record.uuid,
        pool_uuid=str(said["node"]),
        home=str(said.get("host", "")),
        node_uuid=record.node_uuid,
        resource_class=inventory.class_of(record.resource_class or ""),
        shared_in=str(said.get("shared_in", "")),
    )


class Reservations:
    """What an agent knows of them, and the pools that it was told to keep.

    A listing takes its time: what was seen or dropped since it began stays so.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.lease = NodeLease()
        """The pools that are this host's."""
        self._by_server: dict[str, Reservation] = {}
        self._touched_at: dict[str, float] = {}
        self.revision = 0
        """Grows with each change: what follows from all of them need not be found anew until then."""
        self._at_work: Counter[Reservation] = Counter()
        """Those whose machines something is being done to: they stay, even if Ironic drops them meanwhile."""

    def replace(self, there: Iterable[Reservation], began: float) -> None:
        """All that there are, as of `began`."""
        listed = {reservation.server_uuid: reservation for reservation in there}
        with self._lock:
            newer = {uuid: when for uuid, when in self._touched_at.items() if when > began}
            kept = {uuid: self._by_server[uuid] for uuid in newer if uuid in self._by_server}
            found = {uuid: one for uuid, one in listed.items() if uuid not in newer} | kept
            self.revision += found != self._by_server
            self._by_server = found
            self._touched_at = newer

    def put(self, reservation: Reservation) -> None:
        with self._lock:
            self.revision += 1
            self._by_server[reservation.server_uuid] = reservation
            self._touched_at[reservation.server_uuid] = time.monotonic()

    def drop(self, server_uuid: str) -> None:
        with self._lock:
            self.revision += 1
            self._by_server.pop(server_uuid, None)
            self._touched_at[server_uuid] = time.monotonic()

    def pool_of(self, server_uuid: str) -> str | None:
        with self._lock:
            found = self._by_server.get(server_uuid)
            if found is None:
                found = next((one for one in self._at_work if one.server_uuid == server_uuid), None)
        return None if found is None else found.pool_uuid

    def all(self) -> list[Reservation]:
        with self._lock:
            return list(self._by_server.values())

    def has_any(self, pool_uuid: str) -> bool:
        """Whether a pool has servers, or calls that are at work on the last of them."""
        with self._lock:
            return any(one.pool_uuid == pool_uuid for one in (*self._by_server.values(), *self._at_work))

    def machines(self) -> set[str]:
        """The nodes of Ironic that are reserved through the pools that we keep."""
        pools = self.lease.all()
        with self._lock:
            return {
                one.node_uuid
                for one in (*self._by_server.values(), *self._at_work)
                if one.node_uuid is not None and one.pool_uuid in pools
            }

    def begin(self, reservation: Reservation) -> None:
        """Something is done to its machine from now on, until `end`."""
        with self._lock:
            self._at_work[reservation] += 1

    def end(self, reservation: Reservation) -> None:
        with self._lock:
            self._at_work[reservation] -= 1
            self._at_work += Counter()  # without those that are down to nothing

    def in_kept_pools(self) -> list[Reservation]:
        pools = self.lease.all()
        return [one for one in self.all() if one.pool_uuid in pools]
