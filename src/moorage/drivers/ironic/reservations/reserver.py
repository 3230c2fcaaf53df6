"""How a machine is reserved for a server in Ironic, and given back.

Ironic knows a reservation by the server's UUID. So a delayed call does no harm: to reserve again is refused
as long as the server has one, and one that is made for a server that is gone says itself that it is ours, and
is swept; to release is refused while the machine is in use, and whoever is about to use it finds out.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Collection
from typing import Any, TypeVar
from urllib.parse import quote

from moorage.drivers.calls import Calls, DriverCall
from moorage.drivers.contract import DriverError, NoRoomError, NotOursError, ServerSpec
from moorage.drivers.ironic.api.client import BusyError, IronicClient, IronicError
from moorage.drivers.ironic.api.record import ALLOCATING, NodeRecord, ReservationRecord
from moorage.drivers.ironic.nodes.failures import FailureLog
from moorage.drivers.ironic.nodes.known_nodes import KnownNodes
from moorage.drivers.ironic.nodes.node_lease import NodeLease
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations.machine_requirements import MachineRequirements
from moorage.drivers.ironic.settings import IronicSettings

LOG = logging.getLogger(__name__)
T = TypeVar("T")

_CANDIDATES = 16
"""Machines that Ironic may choose from: it looks at each of them, and a few are enough for one to be free."""
_FREE = {"provision_state": "available", "associated": "false", "maintenance": "false"}


class Reserver:
    def __init__(
        self,
        client: IronicClient,
        settings: IronicSettings,
        calls: Calls,
        fleet: KnownNodes,
        pools: NodeLease,
        failures: FailureLog,
    ) -> None:
        self._client = client
        self._settings = settings
        self._calls = calls
        self._fleet = fleet
        self._pools = pools
        self._failures = failures

    def ask_for_one(
        self,
        call: DriverCall,
        spec: ServerSpec,
        wish: MachineRequirements,
        partition: Partition,
        marks: dict[str, Any],
        avoided: Collection[str],
        *,
        fresh: bool,
    ) -> None:
        """What became of it is to be looked up. If it is `fresh`, what we know may not be enough."""
        candidates = [] if fresh else [one for one in self._fleet.listed().values() if wish.fits(one)]
        candidates = [one for one in candidates if one.uuid not in avoided]
        if not candidates:
            candidates = self._patiently(call, lambda: self._look_for(wish, partition, avoided))
        if not candidates:
            raise NoRoomError(self._patiently(call, lambda: self._why_none(wish, partition, avoided)))
        candidates = self._least_failing(candidates)
        # Classes that Placement does not tell apart are different ones to Ironic.
        resource_class = random.choice(candidates).resource_class
        chosen = [one.uuid for one in candidates if one.resource_class == resource_class]
        wanted = {
            "uuid": spec.uuid,
            "resource_class": resource_class,
            "candidate_nodes": random.sample(chosen, min(len(chosen), _CANDIDATES)),
            "traits": sorted(wish.traits),
            "extra": marks,
        }
        try:
            self._order(call, spec.node_uuid, lambda: self._client.reserve(wanted))
        except NotOursError:
            raise
        except DriverError as error:
            # An answer that was lost may have been a yes, and a repeated question is refused for that.
            if self.look_up(call, spec.uuid) is None:
                raise error

    def release(self, call: DriverCall, server_uuid: str, pool_uuid: str) -> None:
        self._order(call, pool_uuid, lambda: self._client.release(server_uuid))

    def settled(self, call: DriverCall, server_uuid: str) -> ReservationRecord | None:
        """The reservation of a server, once Ironic has made up its mind; None if there is none."""
        deadline = time.monotonic() + self._settings.power_timeout
        while True:
            found = self.look_up(call, server_uuid)
            if found is None or found.state != ALLOCATING:
                return found
            if time.monotonic() > deadline:
                raise DriverError("Ironic does not decide about a reservation", retry_elsewhere=True)
            call.wait(self._settings.poll_interval)

    def look_up(self, call: DriverCall, server_uuid: str) -> ReservationRecord | None:
        return self._patiently(call, lambda: self._client.reservation(server_uuid))

    def node_with(self, call: DriverCall, server_uuid: str) -> str | None:
        return self._patiently(call, lambda: self._client.node_with(server_uuid))

    def keeps(self, call: DriverCall, pool_uuid: str) -> bool:
        keeps = self._pools.has(pool_uuid, self._settings.ownership_patience)
        self._calls.check(call)
        return keeps

    def require(self, call: DriverCall, pool_uuid: str) -> None:
        if not self.keeps(call, pool_uuid):
            raise NotOursError(pool_uuid)

    def _least_failing(self, candidates: list[NodeRecord]) -> list[NodeRecord]:
        """Machines that failed lately come only if there is no other."""
        failures = self._failures.avoided.failures
        fewest = min(failures.get(one.uuid, 0) for one in candidates)
        return [one for one in candidates if failures.get(one.uuid, 0) == fewest]

    def _look_for(
        self, wish: MachineRequirements, partition: Partition, avoided: Collection[str]
    ) -> list[NodeRecord]:
        """Machines that are free right now: what we know of most of them may be a minute old."""
        found: list[NodeRecord] = []
        for page in self._client.pages({**partition.filters(), **_FREE}):
            known = [self._fleet.put(record) for record in page]
            found += [one for one in known if one.uuid not in avoided and wish.fits(one)]
            if len(found) >= _CANDIDATES:
                break
        return found

    def _why_none(self, wish: MachineRequirements, partition: Partition, avoided: Collection[str]) -> str:
        """Of machines that were named, what there is against each of them."""
        said = [f"{name}: {self._against(name, wish, partition, avoided)}" for name in sorted(wish.nodes)]
        return "; ".join(said) or f"no node of the partition is free for {wish}"

    def _against(
        self, name: str, wish: MachineRequirements, partition: Partition, avoided: Collection[str]
    ) -> str:
        record = self._client.node(quote(name, safe=""))
        if record is None:
            return "there is no such machine"
        if not partition.has(record):
            return "it is not this host's to give"
        if record.uuid in avoided:
            return "it failed to deploy this server"
        return wish.objection(self._fleet.put(record)) or "it was taken a moment ago"

    def _order(self, call: DriverCall, pool_uuid: str, order: Callable[[], None]) -> None:
        """Right after a look at whether the pool is ours still."""

        def checked() -> None:
            self.require(call, pool_uuid)
            order()

        self._patiently(call, checked)

    def _patiently(self, call: DriverCall, ask: Callable[[], T]) -> T:
        """With patience for an Ironic that is away for a while."""
        for _ in range(self._settings.retries):
            self._calls.check(call)
            try:
                return ask()
            except BusyError as error:
                LOG.warning("Ironic is busy: %s", error)
                call.wait(self._settings.poll_interval)
            except IronicError as error:
                raise DriverError(str(error), retry_elsewhere=True) from error
        raise DriverError("Ironic is away, or busy all the time", retry_elsewhere=True)
