"""Bare metal of which nobody chooses a machine before the host is chosen: the host reserves one in Ironic.

The host is a single node, its pool. What is done to a server's machine then is the other driver's work.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from moorage.drivers.calls import Calls, DriverCall, Interruption
from moorage.drivers.contract import (
    DriverError,
    Node,
    NoRoomError,
    NotOursError,
    ServerSpec,
)
from moorage.drivers.ironic.api.client import RESERVATIONS, IronicClient, IronicError
from moorage.drivers.ironic.api.record import ERROR, NodeRecord, ReservationRecord
from moorage.drivers.ironic.nodes import leftovers
from moorage.drivers.ironic.nodes.known_nodes import Records
from moorage.drivers.ironic.nodes.leftovers import LastMarks
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations import chosen, pool, reservation
from moorage.drivers.ironic.reservations.machine_requirements import MachineRequirements
from moorage.drivers.ironic.reservations.reservation import Reservation, Reservations
from moorage.drivers.ironic.reservations.reserved import ReservedMachines
from moorage.drivers.ironic.reservations.reserver import Reserver
from moorage.drivers.ironic.servers.mark import Mark
from moorage.drivers.ironic.settings import IronicSettings
from moorage.drivers.parts import ConsoleAddress, ConsoleType
from moorage.drivers.rendezvous import share
from moorage.drivers.shared_nodes import RESERVATION, SELECTION, Held, SharedNode

LOG = logging.getLogger(__name__)

_MOST_REFUSALS = 4
"""Reservations in a row that came to nothing, before the host counts as full."""
_MOST_MACHINES = 3
"""Machines on which a deployment is tried, before the server goes to another host."""


class ReservingDriver:
    _reserves = True
    """Whether new servers get their machines by reservation."""

    def __init__(
        self, client: IronicClient, partition: Partition, host: str, settings: IronicSettings | None = None
    ) -> None:
        self._client = client
        self._settings = settings or IronicSettings()
        self._reservations = Reservations()
        self._machines = ReservedMachines(
            client, partition, self._settings, self._reservations, reserves=self._reserves
        )
        self._host = host
        self._pool = pool.uuid_of(host)
        self._homes = {self._pool: host}
        """The hosts whose pools we have heard of."""
        self._lost: set[str] = set()
        self._calls = Calls()
        fleet, pools = self._machines.fleet, self._reservations.lease
        self.machine_failures = failures = self._machines.machine_failures
        self._reserver = Reserver(client, self._settings, self._calls, fleet, pools, failures)
        self._last_marks = LastMarks(self._machines.examine)
        self._chosen: frozenset[str] = frozenset()
        """Machines that the scheduler chose, for servers that are there still."""
        self._looks = 0
        self._offered_at: dict[str, int] = {}
        """By such a machine, the look after which Placement was told that nothing more comes to it."""
        self._arriving: Counter[str] = Counter()
        """Such to which a server comes that was sent there before."""
        self._owning = threading.Lock()
        self._made: dict[str, tuple[Records, int, Partition, Node]] = {}

    @property
    def partition(self) -> Partition:
        return self._machines.partition

    @partition.setter
    def partition(self, partition: Partition) -> None:
        self._machines.partition = partition

    def check(self, partition: Partition) -> None:
        if self._client.version() < RESERVATIONS:
            raise IronicError("this Ironic can't reserve nodes: its API is too old")
        self._machines.check(partition)

    # ------------------------------------------------------------ what there is

    def look(self) -> None:
        """Nodes first: one that is reserved meanwhile is then not counted as free."""
        began, before = time.monotonic(), self._reservations.in_kept_pools()
        try:
            self.check(self.partition)
            self._machines.look()
            found = [read for read in map(reservation.read, self._list_reservations()) if read is not None]
            self._reservations.replace(found, began)
            self._homes |= {one.pool_uuid: one.home for one in found}
            self._own_machines()
            for node_uuid in self._reservations.machines() - self._machines.fleet.owned().keys():
                self._machines.examine(node_uuid)  # it has left the partition, with its server
            self._look_for_lost(before)
            self._chosen = self._find_chosen()
            self._looks += 1
            self._offered_at = {
                uuid: self._offered_at.get(uuid, self._looks) for uuid in self._kept_machines()
            }
        except IronicError as error:
            raise DriverError(str(error)) from error

    def _look_for_lost(self, before: Sequence[Reservation]) -> None:
        """Ironic drops the reservation along with its node: only who knew of it can tell."""
        there = {one.server_uuid for one in self._reservations.all()}
        missing = [one for one in before if one.server_uuid not in there and one.node_uuid is not None]
        self._lost |= {
            one.server_uuid for one in missing if self._machines.examine(one.node_uuid or "") is None
        }
        self._lost -= there

    def lost_servers(self) -> set[str]:
        return set(self._lost)

    def _list_reservations(self) -> Sequence[ReservationRecord]:
        return list(self._client.reservations())

    def _find_chosen(self) -> frozenset[str]:
        return chosen.find(self._machines.fleet.listed(), self._reservations, self._last_marks)

    def terms(self) -> dict[str, Any]:
        shared = {"shared": True} if self._settings.shared_capacity else {}
        return {**self.partition.facts(), SELECTION: RESERVATION, **shared}

    def eligible(self) -> Mapping[str, SharedNode]:
        """The pool, the one provider of what all pools share, which one host has to look after, and the nodes
        of servers for which the scheduler chose machines."""
        records = self._machines.fleet.listed()
        found = {uuid: chosen.shared(records[uuid]) for uuid in self._chosen & records.keys()}
        nodes = {uuid: one for uuid, one in found.items() if one is not None}
        nodes[self._pool] = SharedNode(self._own_pool(), free=not self._reservations.has_any(self._pool))
        if self._settings.shared_capacity:
            capacity = self._capacity()
            nodes[capacity.uuid] = SharedNode(capacity, free=True)
        return nodes

    def share(self, host: str, members: Sequence[str]) -> set[str]:
        """Others' pools come without being asked for, when their hosts are down."""
        nodes = [pool.capacity_uuid(self.partition), *self._chosen]
        return {self._pool} | share(host, members, nodes)

    def look_up_missing(self, node_uuid: str) -> SharedNode | None:
        """A node of Ironic that this host owned when the scheduler chose nodes is none of ours any more, once
        no server is on it, or on its way to it."""
        found = self._machines.look_up_missing(node_uuid)
        if found is not None:
            # Placement has to know first that nothing can come: a build may have just claimed it.
            known = self._looks > self._offered_at.get(node_uuid, self._looks) + 1
            free = found.free and not self._arriving[node_uuid] and known
            return SharedNode(found.node, free=free, withdrawn=free)
        if node_uuid in self._chosen:
            return None
        inherited = Node(node_uuid, self._homes.get(node_uuid, node_uuid), pool.HYPERVISOR_TYPE, {})
        return SharedNode(inherited, free=not self._reservations.has_any(node_uuid))

    def keep(self, node_uuids: Collection[str]) -> None:
        self._reservations.lease.keep(node_uuids)
        self._own_machines()

    def extend_lease(self, until: float) -> None:
        self._reservations.lease.extend_lease(until)
        self._machines.extend_lease(until)

    def nodes(self) -> Sequence[Node]:
        kept, reservations = self._reservations.lease.all(), self._reservations.all()
        records = self._machines.fleet.listed().values()
        inherited = sorted(uuid for uuid in kept if uuid != self._pool and uuid in self._homes)
        own = [self._own_pool()] if self._pool in kept else []
        if self._settings.shared_capacity and pool.capacity_uuid(self.partition) in kept:
            own.append(self._capacity())
        others = (pool.inherited(uuid, self._homes[uuid], records, reservations) for uuid in inherited)
        machines = self._machines.fleet.owned()
        left = (chosen.node(machines[uuid]) for uuid in sorted(self._kept_machines() & machines.keys()))
        return [*own, *others, *(node for node in left if node is not None)]

    def servers(self) -> dict[str, int]:
        return self._machines.servers()

    def progress(self) -> dict[str, int]:
        return self._machines.progress()

    # ------------------------------------------------------------ what is done to servers

    def spawn(self, spec: ServerSpec) -> int:
        if not self._is_pool(spec.node_uuid):
            return self._spawn_on(spec)
        wish = MachineRequirements.of(spec, pool.SEAT)
        with self._calls.begin(spec.uuid, "spawn") as call:
            avoided: set[str] = set()
            while True:
                found = self._reserve(call, spec, wish, avoided)
                try:
                    with self._at_work(found) as machine:
                        return self._machines.spawn(msgspec.structs.replace(spec, node_uuid=machine))
                except NotOursError:
                    raise
                except DriverError as error:
                    self._calls.check(call)  # whoever cut it short cleans up
                    if not error.retry_elsewhere or len(avoided) + 1 >= _MOST_MACHINES:
                        raise
                    LOG.warning("server %s needs another machine: %s", spec.uuid, error)
                    avoided.add(machine)

    def destroy(self, server_uuid: str, node_uuid: str) -> None:
        """The reservation goes with the server: Ironic drops it when it tears the machine down."""
        self.interrupt(server_uuid)
        with self._calls.begin(server_uuid, "destroy") as call:
            found = self._reserver.settled(call, server_uuid)
            read = None if found is None else reservation.read(found)
            if found is None:
                self._reservations.drop(server_uuid)
                self._lost.discard(server_uuid)
                self._machines.destroy(server_uuid, node_uuid)  # if it is on a machine that we keep
            elif read is not None and not self._reservations.lease.has_lost(read.pool_uuid):
                self._reserver.require(call, read.pool_uuid)
                self._remove(call, found)

    def interrupt(self, server_uuid: str) -> None:
        self._calls.interrupt(server_uuid, Interruption.DESTROYED)
        self._machines.interrupt(server_uuid)

    def held(self) -> set[Held]:
        """Also through pools of others: one whose host is down has to get another keeper for it."""
        records = self._machines.fleet.listed().values()
        return leftovers.held_through(records, self._reservations.all(), self._last_marks)

    def sweep(self, held: Held) -> bool:
        with self._calls.begin(held.server_uuid, "sweep") as call:
            found = self._reserver.settled(call, held.server_uuid)
            if found is not None and self._is_ours(found, held.node_uuid):
                keeps = self._reserver.keeps(call, held.node_uuid)
                if keeps:
                    self._remove(call, found)
                return keeps
            return self._sweep_unreserved(call, held)

    def _sweep_unreserved(self, call: DriverCall, held: Held) -> bool:
        """A node that has our mark, but that nobody of us has reserved (any more)."""
        listed = self._machines.fleet.listed().values()
        nodes = [
            one.uuid for one in listed if one.instance_uuid == held.server_uuid or one.uuid == held.node_uuid
        ]
        for node_uuid in nodes:
            mark = self._mark_on(node_uuid)
            if mark is None or not self._keeps_any(call, node_uuid, mark.home):
                continue
            with self._machine_of(Reservation(held.server_uuid, mark.home, "", node_uuid, "")):
                if self._machines.sweep(Held(held.server_uuid, node_uuid)):
                    return True
        return False

    def _keeps_any(self, call: DriverCall, *uuids: str) -> bool:
        return any(self._reserver.keeps(call, uuid) for uuid in uuids)

    def _mark_on(self, node_uuid: str) -> Mark | None:
        try:
            found = self._machines.examine(node_uuid)
        except IronicError as error:
            raise DriverError(str(error)) from error
        return None if found is None else leftovers.mark_of(found)

    def start(self, server_uuid: str, node_uuid: str) -> int:
        with self._machine(server_uuid, node_uuid) as machine:
            return self._machines.start(server_uuid, machine)

    def stop(self, server_uuid: str, node_uuid: str) -> int:
        with self._machine(server_uuid, node_uuid) as machine:
            return self._machines.stop(server_uuid, machine)

    def reboot(self, server_uuid: str, node_uuid: str, *, hard: bool) -> int:
        with self._machine(server_uuid, node_uuid) as machine:
            return self._machines.reboot(server_uuid, machine, hard=hard)

    def power(self, server_uuid: str, node_uuid: str) -> int:
        with self._machine(server_uuid, node_uuid) as machine:
            return self._machines.power(server_uuid, machine)

    def recall(self, server_uuid: str) -> ServerSpec:
        return self._machines.recall(server_uuid)

    def trigger_crash_dump(self, server_uuid: str, node_uuid: str) -> None:
        with self._machine(server_uuid, node_uuid) as machine:
            self._machines.trigger_crash_dump(server_uuid, machine)

    def rescue(self, spec: ServerSpec) -> int:
        with self._machine(spec.uuid, spec.node_uuid) as machine:
            return self._machines.rescue(msgspec.structs.replace(spec, node_uuid=machine))

    def unrescue(self, server_uuid: str, node_uuid: str) -> int:
        with self._machine(server_uuid, node_uuid) as machine:
            return self._machines.unrescue(server_uuid, machine)

    def console_log(self, server_uuid: str, node_uuid: str, lines: int | None) -> str:
        with self._machine(server_uuid, node_uuid) as machine:
            return self._machines.console_log(server_uuid, machine, lines)

    def console(self, server_uuid: str, node_uuid: str, console_type: ConsoleType) -> ConsoleAddress:
        with self._machine(server_uuid, node_uuid) as machine:
            return self._machines.console(server_uuid, machine, console_type)

    def attach_interface(self, server_uuid: str, node_uuid: str, port: Mapping[str, Any]) -> None:
        with self._machine(server_uuid, node_uuid) as machine:
            self._machines.attach_interface(server_uuid, machine, port)

    def detach_interface(self, server_uuid: str, node_uuid: str, port_id: str) -> None:
        with self._machine(server_uuid, node_uuid) as machine:
            self._machines.detach_interface(server_uuid, machine, port_id)

    def rebuild(self, spec: ServerSpec) -> int:
        with self._machine(spec.uuid, spec.node_uuid) as machine:
            return self._machines.rebuild(msgspec.structs.replace(spec, node_uuid=machine))

    def close(self) -> None:
        self._calls.close()
        self._reservations.lease.close()
        self._machines.close()

    # ------------------------------------------------------------ how a machine is found

    def _reserve(
        self, call: DriverCall, spec: ServerSpec, wish: MachineRequirements, avoided: Collection[str]
    ) -> ReservationRecord:
        """The reservation of the server: that which it has already, or another one."""
        refusals = 0
        while True:
            found = self._reserver.settled(call, spec.uuid)
            self._reserver.require(call, spec.node_uuid)
            if found is None:
                self._leave_machine(call, spec)
                given = (self.partition, self._marks(spec), avoided)
                self._reserver.ask_for_one(call, spec, wish, *given, fresh=refusals > 0)
            elif not self._is_ours(found, spec.node_uuid):
                self._leave_other_pool(call, found)
            elif found.state == ERROR:
                refusals += 1
                self._reserver.release(call, spec.uuid, spec.node_uuid)
                if refusals >= _MOST_REFUSALS:
                    raise NoRoomError(f"Ironic reserves no node for {wish}: {found.last_error}")
            elif found.node_uuid in avoided:
                raise DriverError(f"node {found.node_uuid} can't be given back", retry_elsewhere=True)
            else:
                return found

    @contextmanager
    def _at_work(self, found: ReservationRecord) -> Iterator[str]:
        """The machine that is reserved, for a call that works on it."""
        read = reservation.read(found)
        assert read is not None
        assert read.node_uuid is not None
        self._reservations.put(read)
        self._homes[read.pool_uuid] = read.home
        with self._machine_of(read):
            yield read.node_uuid

    @contextmanager
    def _machine_of(self, reserved: Reservation) -> Iterator[None]:
        """It is ours as long as this lasts and we keep the pool: the reservation may end before."""
        self._reservations.begin(reserved)
        self._own_machines()
        try:
            yield
        finally:
            self._reservations.end(reserved)
            self._own_machines()

    def _leave_other_pool(self, call: DriverCall, found: ReservationRecord) -> None:
        """An attempt whose host died may have left a machine; Ironic reserves but one for a server.

        If it is another host's to give back, that one is told to.
        """
        LOG.warning("server %s has a machine of another host still, and has to leave it first", found.uuid)
        for _ in range(self._settings.retries + 1):
            left = self._reserver.settled(call, found.uuid)
            if left is None:
                return
            if self._is_kept(call, left):
                self._remove(call, left)
                return
            call.wait(self._settings.poll_interval)
        raise DriverError(f"the server does not leave node {found.node_uuid}", retry_elsewhere=True)

    def _remove(self, call: DriverCall, found: ReservationRecord) -> None:
        read = reservation.read(found)
        assert read is not None
        if found.state != ERROR and found.node_uuid is not None:
            with self._at_work(found) as machine:
                self._machines.destroy(found.uuid, machine)
        self._reserver.release(call, found.uuid, read.pool_uuid)
        self._reservations.drop(found.uuid)
        self._own_machines()

    @contextmanager
    def _machine(self, server_uuid: str, pool_uuid: str) -> Iterator[str]:
        """The machine that a server has, for a call that works on it."""
        with self._calls.begin(server_uuid, "machine") as call:
            self._reserver.require(call, pool_uuid)
            found = self._reserver.settled(call, server_uuid)
            reserved = found is not None and self._is_ours(found, pool_uuid)
            if self._is_pool(pool_uuid) and (not reserved or found is None or found.node_uuid is None):
                raise DriverError(f"no machine is reserved for server {server_uuid}")
        if found is None or not reserved:
            yield pool_uuid  # the scheduler chose it
            return
        with self._at_work(found) as machine:
            yield machine

    def _is_ours(self, found: ReservationRecord, pool_uuid: str) -> bool:
        read = reservation.read(found)
        return read is not None and read.pool_uuid == pool_uuid

    def _is_kept(self, call: DriverCall, found: ReservationRecord) -> bool:
        read = reservation.read(found)
        return read is not None and self._reserver.keeps(call, read.pool_uuid)

    def _own_machines(self) -> None:
        """One at a time, so that nobody puts back what somebody else has just changed.

        Not before we were told what is ours: until then nothing is known to be another host's, either.
        """
        if not self._reservations.lease.was_told():
            return
        with self._owning:
            self._machines.keep(self._reservations.machines() | self._kept_machines())

    def _is_pool(self, node_uuid: str) -> bool:
        return node_uuid in self._homes or node_uuid == pool.capacity_uuid(self.partition)

    def _kept_machines(self) -> set[str]:
        """The nodes that this host was told to keep that are machines."""
        return {uuid for uuid in self._reservations.lease.all() if not self._is_pool(uuid)}

    def _spawn_on(self, spec: ServerSpec) -> int:
        """The scheduler chose the machine: it does, or it did when this server was sent here."""
        self._arriving[spec.node_uuid] += 1
        try:
            with self._calls.begin(spec.uuid, "spawn") as call:
                found = self._reserver.settled(call, spec.uuid)
                if found is not None and reservation.read(found) is not None:
                    self._leave_other_pool(call, found)
                return self._machines.spawn(spec)
        finally:
            self._arriving[spec.node_uuid] -= 1
            self._arriving += Counter()

    def _leave_machine(self, call: DriverCall, spec: ServerSpec) -> None:
        """An attempt on a host whose machines the scheduler chooses may have left the server on one: Ironic
        reserves none for it as long as it is there. If that is not ours, its host was told to remove it."""
        for _ in range(self._settings.retries + 1):
            found = self._reserver.node_with(call, spec.uuid)
            if found is None:
                return
            if self._reserver.keeps(call, found):
                self._machines.destroy(spec.uuid, found)
            else:
                call.wait(self._settings.poll_interval)
        raise DriverError(f"the server does not leave node {found}", retry_elsewhere=True)

    def _marks(self, spec: ServerSpec) -> dict[str, Any]:
        shared_in = pool.capacity_uuid(self.partition) if self._settings.shared_capacity else ""
        return reservation.marks(spec.node_uuid, self._homes.get(spec.node_uuid, self._host), shared_in)

    def _own_pool(self) -> Node:
        shared = self._settings.shared_capacity
        return self._made_of_all(
            self._pool,
            lambda records, reservations: pool.own(
                self._host, self.partition, records, reservations, shared=shared
            ),
        )

    def _capacity(self) -> Node:
        return self._made_of_all(
            pool.capacity_uuid(self.partition),
            lambda records, reservations: pool.capacity(self.partition, records, reservations),
        )

    def _made_of_all(
        self, uuid: str, make: Callable[[Collection[NodeRecord], Sequence[Reservation]], Node]
    ) -> Node:
        """What follows from all machines and reservations: not made anew until one of them has changed."""
        records, revision = self._machines.fleet.listed(), self._reservations.revision
        known = self._made.get(uuid)
        if known is None or known[0] is not records or known[1:3] != (revision, self.partition):
            made = make(records.values(), self._reservations.all())
            known = self._made[uuid] = (records, revision, self.partition, made)
        return known[3]
