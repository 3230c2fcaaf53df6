"""Bare metal: servers are deployed to the nodes of an Ironic.

Whatever is to be done to a node is a step that looks at it and does the next thing, again and again until
nothing is left to do. So a call that comes again after a crash goes on where the first one was.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from moorage.drivers.calls import Calls, DriverCall, Interruption
from moorage.drivers.contract import (
    NO_STATE,
    RUNNING,
    SHUT_DOWN,
    BrokenServerError,
    DriverError,
    MachineFailedError,
    Node,
    NotOursError,
    ServerSpec,
)
from moorage.drivers.ironic.api.client import FILTERS, IronicClient, IronicError
from moorage.drivers.ironic.api.record import UNUSED_STATES, NodeRecord
from moorage.drivers.ironic.api.writer import Writer
from moorage.drivers.ironic.nodes import inventory, leftovers
from moorage.drivers.ironic.nodes.descriptions import Descriptions, Records, describe
from moorage.drivers.ironic.nodes.failures import FailureLog
from moorage.drivers.ironic.nodes.known_nodes import KnownNodes
from moorage.drivers.ironic.nodes.late_rescues import LateRescues
from moorage.drivers.ironic.nodes.leftovers import LastMarks
from moorage.drivers.ironic.nodes.listing import NodeListing
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.nodes.state_counts import StateCounts
from moorage.drivers.ironic.servers import machine_console, recalling
from moorage.drivers.ironic.servers import mark as marks
from moorage.drivers.ironic.servers.console_log import ConsoleLog
from moorage.drivers.ironic.servers.deploying import Deploying, Rebuilding, require_server
from moorage.drivers.ironic.servers.machine_console import SwitchingOnConsole
from moorage.drivers.ironic.servers.operating import Interrupting, Powering, VifChange, power_of
from moorage.drivers.ironic.servers.removing import Clearing, Removing, is_deployed_for_nobody
from moorage.drivers.ironic.servers.rescuing import RescuingMachine, Unrescuing
from moorage.drivers.ironic.settings import IronicSettings
from moorage.drivers.ironic.settling import Settling, Step
from moorage.drivers.parts import ConsoleAddress, ConsoleType
from moorage.drivers.rendezvous import share
from moorage.drivers.shared_nodes import Held, SharedNode

LOG = logging.getLogger(__name__)


class IronicDriver:
    def __init__(
        self, client: IronicClient, partition: Partition, settings: IronicSettings | None = None
    ) -> None:
        self._client = client
        self._settings = settings or IronicSettings()
        self._calls = Calls()
        self._progress: dict[str, int] = {}
        self._descriptions = Descriptions()
        self.partition = partition
        """May be replaced at any time; the next look goes by it."""
        self.fleet = KnownNodes()
        self._listing = NodeListing(client, self.fleet, self._settings.full_listing_interval)
        self._settling = Settling(client, self.fleet, self._calls, self._settings)
        self._eligible: tuple[Records, Mapping[str, SharedNode]] = ({}, {})
        self._servers: tuple[Records, dict[str, int]] = ({}, {})
        self._last_marks = LastMarks(self.examine)
        self._console_log = ConsoleLog(self._settings.console_log)
        self._counts = StateCounts()
        self._late_rescues = LateRescues(self.examine, self._unattended_writer)
        self.machine_failures = FailureLog(self.fleet, self._settings, self.examine)

    def look(self) -> None:
        partition = self.partition
        try:
            self.check(partition)
            self._listing.look(partition)
            self.machine_failures.look(self._watched_machines())
            self._counts.look(partition, self.fleet.listed())
            self._late_rescues.look(self.fleet.owned().values())
        except IronicError as error:
            raise DriverError(str(error)) from error

    def check(self, partition: Partition) -> None:
        """Without a filter that Ironic knows, everything would be listed: that must never happen."""
        version = self._client.version()
        for name, since in FILTERS.items():
            if name in partition.filters() and version < since:
                raise IronicError(f"this Ironic can't tell nodes by {name}: its API is too old")

    def terms(self) -> dict[str, Any]:
        return self.partition.facts()

    def eligible(self) -> Mapping[str, SharedNode]:
        listed = self.fleet.listed()
        known, eligible = self._eligible
        if known is not listed:
            eligible = self._descriptions.of_all(listed)
            self._eligible = (listed, eligible)
        return eligible

    def share(self, host: str, members: Sequence[str]) -> set[str]:
        return share(host, members, list(self.fleet.listed()))

    def look_up_missing(self, node_uuid: str) -> SharedNode | None:
        try:
            record = self.examine(node_uuid)
        except IronicError as error:
            raise DriverError(str(error)) from error
        if record is None:
            return None
        nameless = Node(node_uuid, node_uuid, inventory.HYPERVISOR_TYPE, {})  # it has lost its resource class
        return describe(record) or SharedNode(nameless, free=record.instance_uuid is None)

    def keep(self, node_uuids: Collection[str]) -> None:
        self.fleet.own(node_uuids)

    def extend_lease(self, until: float) -> None:
        self.fleet.lease.extend_lease(until)

    def nodes(self) -> Sequence[Node]:
        found = (self._descriptions.of(record) for record in self.fleet.owned().values())
        return [shared.node for shared in found if shared is not None]

    def servers(self) -> dict[str, int]:
        owned = self.fleet.owned()
        known, found = self._servers
        if known is not owned:
            found = {
                record.instance_uuid: power_of(record)
                for record in owned.values()
                if record.instance_uuid is not None and record.state not in UNUSED_STATES
            }
            self._servers = (owned, found)
        return found

    def progress(self) -> dict[str, int]:
        return dict(self._progress)

    def examine(self, node_uuid: str) -> NodeRecord | None:
        """What Ironic itself says of a node; None if it has none such."""
        return self._settling.examine(node_uuid)

    def spawn(self, spec: ServerSpec) -> int:
        with self._calls.begin(spec.uuid, "spawn") as call, self._watched(spec.uuid) as progress:
            self._settling.require(call, spec.node_uuid)
            self._leave_other_node(call, spec)
            mark, writer = marks.of(spec, self._home(spec)), self._settling.writer(call, spec.node_uuid)
            log, reserved = self._console_log, self._is_reserved(spec.uuid)
            step = Deploying(spec, mark, self._client, writer, progress, log, reserved=reserved)
            try:
                self._settling.settle(call, spec.node_uuid, step, self._settings.deploy_timeout)
                return self._run(call, spec)
            except NotOursError:
                raise
            except DriverError as error:
                self._calls.check(call)  # whoever cut it short cleans up
                if isinstance(error, MachineFailedError):
                    self.machine_failures.note_deployment(spec, str(error))
                self._undo(spec)
                raise

    def destroy(self, server_uuid: str, node_uuid: str) -> None:
        """Over once the server is gone: the node is cleaned for a while yet, and nobody's until then."""
        self.interrupt(server_uuid)
        with self._calls.begin(server_uuid, "destroy") as call:
            found = self._node_with(call, server_uuid)
            if found is not None and not self.fleet.lease.has_lost(found):
                self._settling.require(call, found)
                self._remove(call, server_uuid, found)

    def interrupt(self, server_uuid: str) -> None:
        self._calls.interrupt(server_uuid, Interruption.DESTROYED)

    def lost_servers(self) -> set[str]:
        return set()

    def held(self) -> set[Held]:
        return leftovers.held(self.fleet.owned().values(), self._last_marks)

    def sweep(self, held: Held) -> bool:
        """Looks itself whether there is anything of ours to be removed: who told us may be wrong by now."""
        with self._calls.begin(held.server_uuid, "sweep") as call:
            record = self._settling.look_at(call, held.node_uuid)
            if record is None or not self._settling.owns(call, record.uuid):
                return False
            mark = marks.read(record)
            if is_deployed_for_nobody(record, held.server_uuid):
                step: Step = Clearing(held.server_uuid, self._settling.writer(call, record.uuid))
                self._settling.settle(call, record.uuid, step, self._settings.deploy_timeout)
            elif mark is not None and record.instance_uuid == held.server_uuid == mark.server_uuid:
                self._remove(call, held.server_uuid, record.uuid)
            else:
                return False
            return True

    def start(self, server_uuid: str, node_uuid: str) -> int:
        with self._calls.begin(server_uuid, "start") as call:
            return self._set_power(call, server_uuid, node_uuid, "power on", RUNNING)

    def stop(self, server_uuid: str, node_uuid: str) -> int:
        with self._calls.begin(server_uuid, "stop") as call:
            return self._shut_down(call, server_uuid, node_uuid)

    def _shut_down(self, call: DriverCall, server_uuid: str, node_uuid: str) -> int:
        """Politely first; hardware that knows no politeness, or a system that does not listen, is cut."""
        try:
            return self._set_power(call, server_uuid, node_uuid, "soft power off", SHUT_DOWN)
        except NotOursError:
            raise
        except DriverError as error:
            self._calls.check(call)
            LOG.info("node %s is powered off the hard way: %s", node_uuid, error)
            return self._set_power(call, server_uuid, node_uuid, "power off", SHUT_DOWN)

    def reboot(self, server_uuid: str, node_uuid: str, *, hard: bool) -> int:
        with self._calls.begin(server_uuid, "reboot") as call:
            if not hard:
                try:
                    return self._set_power(call, server_uuid, node_uuid, "soft rebooting", RUNNING)
                except DriverError as error:
                    self._calls.check(call)
                    LOG.info("node %s is rebooted the hard way: %s", node_uuid, error)
            return self._set_power(call, server_uuid, node_uuid, "rebooting", RUNNING)

    def power(self, server_uuid: str, node_uuid: str) -> int:
        with self._calls.begin(server_uuid, "power") as call:
            seen = NO_STATE

            def step(record: NodeRecord) -> bool:
                nonlocal seen
                require_server(record, server_uuid)
                seen = power_of(record)
                return record.reservation is None

            self._settling.settle(call, node_uuid, step, self._settings.power_timeout)
            return seen

    def recall(self, server_uuid: str) -> ServerSpec:
        try:
            found = self._client.node_with(server_uuid)
            record = None if found is None else self.examine(found)
        except IronicError as error:
            raise DriverError(str(error)) from error
        if record is None:
            raise DriverError(f"Ironic has no node with server {server_uuid}")
        return recalling.spec_of(record, server_uuid)

    def trigger_crash_dump(self, server_uuid: str, node_uuid: str) -> None:
        with self._calls.begin(server_uuid, "crash dump") as call:
            step = Interrupting(server_uuid, self._settling.writer(call, node_uuid))
            self._settling.settle(call, node_uuid, step, self._settings.power_timeout)

    def console_log(self, server_uuid: str, node_uuid: str, lines: int | None) -> str:
        with self._calls.begin(server_uuid, "console log") as call:
            record = self._settling.look_at(call, node_uuid)
            if record is None:
                raise DriverError(f"Ironic has no node {node_uuid}")
            require_server(record, server_uuid)
            return self._console_log.read(record, server_uuid, lines)

    def console(self, server_uuid: str, node_uuid: str, console_type: ConsoleType) -> ConsoleAddress:
        with self._calls.begin(server_uuid, "console") as call:
            writer = self._settling.writer(call, node_uuid)
            step = SwitchingOnConsole(server_uuid, console_type, self._client, writer)
            self._settling.settle(call, node_uuid, step, machine_console.TIMEOUT)
            assert step.address is not None
            return step.address

    def attach_interface(self, server_uuid: str, node_uuid: str, port: Mapping[str, Any]) -> None:
        port_id = str(port["id"])
        self._set_vif("attach_interface", server_uuid, node_uuid, port_id, attached=True)

    def detach_interface(self, server_uuid: str, node_uuid: str, port_id: str) -> None:
        self._set_vif("detach_interface", server_uuid, node_uuid, port_id, attached=False)

    def _set_vif(self, name: str, server_uuid: str, node_uuid: str, port_id: str, *, attached: bool) -> None:
        with self._calls.begin(server_uuid, name) as call:
            writer = self._settling.writer(call, node_uuid)
            step = VifChange(server_uuid, port_id, self._client, writer, attached=attached)
            self._settling.settle(call, node_uuid, step, self._settings.power_timeout)

    def rebuild(self, spec: ServerSpec) -> int:
        with self._calls.begin(spec.uuid, "rebuild") as call, self._watched(spec.uuid) as progress:
            mark, writer = marks.of(spec, self._home(spec)), self._settling.writer(call, spec.node_uuid)
            step = Rebuilding(spec, mark, self._client, writer, progress)
            self._settling.settle(call, spec.node_uuid, step, self._settings.deploy_timeout)
            return self._run(call, spec)

    def rescue(self, spec: ServerSpec) -> int:
        """What comes to nothing is undone, so that the server is what it was."""
        with self._calls.begin(spec.uuid, "rescue") as call, self._watched(spec.uuid) as progress:
            step = RescuingMachine(spec, self._client, self._settling.writer(call, spec.node_uuid), progress)
            try:
                self._settling.settle(call, spec.node_uuid, step.prepare, self._settings.power_timeout)
                if step.shall_stop:
                    self._shut_down(call, spec.uuid, spec.node_uuid)
                self._settling.settle(call, spec.node_uuid, step, self._settings.deploy_timeout)
                return self._set_power(call, spec.uuid, spec.node_uuid, "power on", RUNNING)
            except NotOursError:
                raise
            except DriverError:
                self._calls.check(call)  # whoever cut it short cleans up
                if step.prepared:
                    self._undo_rescue(call, spec, step)
                raise

    def _undo_rescue(self, call: DriverCall, spec: ServerSpec, step: RescuingMachine) -> None:
        try:
            self._settling.settle(call, spec.node_uuid, step.tidy, self._settings.power_timeout)
            self._leave_rescue(call, spec.uuid, spec.node_uuid, runs=step.ran)
        except NotOursError:
            raise
        except DriverError as error:
            self._calls.check(call)
            raise BrokenServerError(f"it was not rescued, nor is it itself again: {error}") from error

    def unrescue(self, server_uuid: str, node_uuid: str) -> int:
        with self._calls.begin(server_uuid, "unrescue") as call, self._watched(server_uuid):
            return self._leave_rescue(call, server_uuid, node_uuid, runs=True)

    def _leave_rescue(self, call: DriverCall, server_uuid: str, node_uuid: str, *, runs: bool) -> int:
        step = Unrescuing(server_uuid, self._settling.writer(call, node_uuid))
        self._settling.settle(call, node_uuid, step, self._settings.deploy_timeout)
        power = (RUNNING, "power on") if runs else (SHUT_DOWN, "power off")
        return self._set_power(call, server_uuid, node_uuid, power[1], power[0])

    def close(self) -> None:
        self._calls.close()
        self.fleet.lease.close()

    def _is_reserved(self, server_uuid: str) -> bool:
        """Whether a server got its node by reservation: then it does in no other way."""
        return False

    def _watched_machines(self) -> Records:
        """Those whose failed cleaning this host tells."""
        return self.fleet.owned()

    def _home(self, spec: ServerSpec) -> str:
        """The node of the cloud that the server is on."""
        return spec.node_uuid

    def _unattended_writer(self, node_uuid: str) -> Writer:
        """For what nobody asked for: a node that is not surely ours now is left for another time."""

        def require() -> None:
            if not self.fleet.lease.has(node_uuid, patience=0):
                raise NotOursError(node_uuid)

        return Writer(self._client, node_uuid, require)

    def _remove(self, call: DriverCall, server_uuid: str, node_uuid: str) -> None:
        writer = self._settling.writer(call, node_uuid)
        step = Removing(server_uuid, self._client, writer, reserved=self._is_reserved(server_uuid))
        self._settling.settle(call, node_uuid, step, self._settings.deploy_timeout)

    def _set_power(self, call: DriverCall, server_uuid: str, node_uuid: str, target: str, power: int) -> int:
        writer = self._settling.writer(call, node_uuid)
        step = Powering(server_uuid, target, power, self._client, writer)
        self._settling.settle(call, node_uuid, step, self._settings.power_timeout)
        return power

    def _run(self, call: DriverCall, spec: ServerSpec) -> int:
        if spec.power_on:
            return self._set_power(call, spec.uuid, spec.node_uuid, "power on", RUNNING)
        return self._set_power(call, spec.uuid, spec.node_uuid, "power off", SHUT_DOWN)

    def _leave_other_node(self, call: DriverCall, spec: ServerSpec) -> None:
        """An attempt whose host died may have left the server on another node; Ironic takes it but once.

        If that node is another host's by now, that one is told to remove it from there.
        """
        told = None
        for _ in range(self._settings.retries + 1):
            found = self._node_with(call, spec.uuid)
            if found is None or found == spec.node_uuid:
                return
            if found != told:
                LOG.warning("server %s is on node %s still, and has to leave it first", spec.uuid, found)
                told = found
            if self._settling.owns(call, found):
                self._remove(call, spec.uuid, found)
            else:
                call.wait(self._settings.poll_interval)
        raise DriverError(f"the server does not leave node {found}", retry_elsewhere=True)

    def _node_with(self, call: DriverCall, server_uuid: str) -> str | None:
        return self._settling.patiently(call, lambda: self._client.node_with(server_uuid))

    def _undo(self, spec: ServerSpec) -> None:
        """Give the node back after a failure; what can't be done now is done when a conductor asks for it."""
        with contextlib.suppress(DriverError):
            self.destroy(spec.uuid, spec.node_uuid)

    @contextlib.contextmanager
    def _watched(self, server_uuid: str) -> Iterator[Callable[[int], None]]:
        """What is yielded takes how far the server has come."""

        def note(percent: int) -> None:
            self._progress[server_uuid] = percent

        note(0)
        try:
            yield note
        finally:
            self._progress.pop(server_uuid, None)
