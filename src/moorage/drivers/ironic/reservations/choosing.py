"""Bare metal of which the scheduler chooses each machine, on a host that may have reserved some before.

What it reserved it looks after as pools, which offer nothing any more, until the last server in them is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, KeysView, Mapping, Sequence
from typing import Any

from moorage.drivers.contract import Node
from moorage.drivers.ironic.api.client import RESERVATIONS, IronicError
from moorage.drivers.ironic.api.record import ReservationRecord
from moorage.drivers.ironic.nodes import leftovers
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations import pool
from moorage.drivers.ironic.reservations.reserving import ReservingDriver
from moorage.drivers.shared_nodes import KEEPS_POOLS, Held, SharedNode

LOG = logging.getLogger(__name__)

_DENIED = 403


class ChoosingDriver(ReservingDriver):
    _reserves = False

    def check(self, partition: Partition) -> None:
        self._machines.check(partition)

    def terms(self) -> dict[str, Any]:
        return {**self.partition.facts(), KEEPS_POOLS: True}

    def eligible(self) -> Mapping[str, SharedNode]:
        """All nodes; and the own pool, as long as a server is in it."""
        nodes = self._machines.eligible()
        if not self._reservations.has_any(self._pool):
            return nodes
        return _Both(nodes, {self._pool: SharedNode(self._left(self._pool), free=False)})

    def share(self, host: str, members: Sequence[str]) -> set[str]:
        return {self._pool} | self._machines.share(host, members)

    def look_up_missing(self, node_uuid: str) -> SharedNode | None:
        if self._is_pool(node_uuid):
            left = self._reservations.has_any(node_uuid)
            return SharedNode(self._left(node_uuid), free=not left, withdrawn=not left)
        return self._machines.look_up_missing(node_uuid)

    def nodes(self) -> Sequence[Node]:
        """A machine that is reserved through a pool of ours may be another host's node."""
        kept = self._reservations.lease.all()
        chosen = [node for node in self._machines.nodes() if node.uuid in kept]
        return [*chosen, *(self._left(uuid) for uuid in sorted(kept) if uuid in self._homes)]

    def held(self) -> set[Held]:
        reservations, kept = self._reservations.all(), self._reservations.lease.all()
        reserved = {one.node_uuid for one in reservations}
        records = [
            one for uuid, one in self._machines.fleet.owned().items() if uuid in kept and uuid not in reserved
        ]
        pools = {Held(one.server_uuid, one.pool_uuid) for one in reservations}
        return leftovers.held(records, self._last_marks) | pools

    def _list_reservations(self) -> Sequence[ReservationRecord]:
        """Nothing depends on them here, unless there are some: an account may lack the rights for them."""
        if self._client.version() < RESERVATIONS:
            return []
        try:
            return super()._list_reservations()
        except IronicError as error:
            if error.status != _DENIED:
                raise
            return []

    def _find_chosen(self) -> frozenset[str]:
        return frozenset()  # all nodes are such

    def _left(self, pool_uuid: str) -> Node:
        records = self._machines.fleet.listed().values()
        return pool.inherited(pool_uuid, self._homes[pool_uuid], records, self._reservations.all())


class _Both(Mapping[str, SharedNode]):
    """Nodes that are described only when somebody asks, and a few more."""

    def __init__(self, nodes: Mapping[str, SharedNode], pools: Mapping[str, SharedNode]) -> None:
        self._nodes = nodes
        self._pools = pools

    def __getitem__(self, uuid: str) -> SharedNode:
        return self._pools[uuid] if uuid in self._pools else self._nodes[uuid]

    def __iter__(self) -> Iterator[str]:
        yield from self._pools
        yield from self._nodes

    def __len__(self) -> int:
        return len(self._pools) + len(self._nodes)

    def __contains__(self, uuid: object) -> bool:
        return uuid in self._pools or uuid in self._nodes

    def keys(self) -> KeysView[str]:
        return dict.fromkeys(self).keys()
