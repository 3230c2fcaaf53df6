"""Bare metal: servers are deployed to the nodes of an Ironic.

Whatever is to be done to a node is a step that looks at it and does the next thing, again and again until
nothing is left to do. So a call that comes again after a crash goes on where the first one was.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from moorage.drivers.calls import Call, Calls, Interruption
from moorage.drivers.contract import (
    NO_STATE,
    RUNNING,
    SHUT_DOWN,
    DriverError,
    Node,
    NotOursError,
    Parcel,
    ServerSpec,
    SharedNode,
)
from moorage.drivers.ironic import deployment, inventory
from moorage.drivers.ironic.client import FILTERS, BusyError, IronicClient, IronicError
from moorage.drivers.ironic.descriptions import Descriptions, Records, describe
from moorage.drivers.ironic.fleet import Fleet
from moorage.drivers.ironic.listing import Listing
from moorage.drivers.ironic.partition import Partition, share
from moorage.drivers.ironic.record import (
    ACTIVE,
    AVAILABLE,
    DELETING,
    DEPLOY_FAILED,
    DEPLOYING,
    ERROR,
    POWER_OFF,
    POWER_ON,
    REBUILD,
    UNUSED_STATES,
    WAITING,
    NodeRecord,
)
from moorage.drivers.ironic.settings import IronicSettings

LOG = logging.getLogger(__name__)

Step = Callable[[NodeRecord], bool]
"""Does the next thing to a node; True once nothing is left to do."""

_POWERS = {POWER_ON: RUNNING, POWER_OFF: SHUT_DOWN}
_PROGRESS = {AVAILABLE: 10, DEPLOYING: 30, WAITING: 60, ACTIVE: 90}
_VALIDATED = ("boot", "deploy", "network", "power", "storage")


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
        self.fleet = Fleet()
        self._listing = Listing(client, self.fleet, self._settings.full_listing_interval)
        self._eligible: tuple[Records, Mapping[str, SharedNode]] = ({}, {})
        self._servers: tuple[Records, dict[str, int]] = ({}, {})

    def look(self) -> None:
        partition = self.partition
        try:
            self.check(partition)
            self._listing.look(partition)
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

    def fate(self, node_uuid: str) -> SharedNode | None:
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

    def nodes(self) -> Sequence[Node]:
        found = (self._descriptions.of(record) for record in self.fleet.owned().values())
        return [shared.node for shared in found if shared is not None]

    def servers(self) -> dict[str, int]:
        owned = self.fleet.owned()
        known, found = self._servers
        if known is not owned:
            found = {
                record.instance_uuid: _power(record)
                for record in owned.values()
                if record.instance_uuid is not None and record.state not in UNUSED_STATES
            }
            self._servers = (owned, found)
        return found

    def progress(self) -> dict[str, int]:
        return dict(self._progress)

    def examine(self, node_uuid: str) -> NodeRecord | None:
        """What Ironic itself says of a node; None if it has none such."""
        record = self._client.node(node_uuid)
        if record is None:
            self.fleet.drop(node_uuid)
        else:
            self.fleet.put(record)
        return record

    def spawn(self, spec: ServerSpec) -> int:
        with self._calls.begin(spec.uuid, "spawn") as call, self._watched(spec.uuid):
            self._require(call, spec.node_uuid)
            self._leave_other_node(call, spec)
            try:
                self._settle(call, spec.node_uuid, partial(self._deploy, spec), self._settings.deploy_timeout)
                return self._run(call, spec)
            except DriverError:
                self._calls.check(call)  # whoever cut it short cleans up
                self._undo(spec)
                raise

    def destroy(self, server_uuid: str, node_uuid: str) -> None:
        """Over once the server is gone: the node is cleaned for a while yet, and nobody's until then."""
        self._calls.interrupt(server_uuid, Interruption.DESTROYED)
        with self._calls.begin(server_uuid, "destroy") as call:
            found = self._node_with(call, server_uuid)
            if found is None or not self._owns(call, found):
                return
            self._settle(call, found, partial(self._unprovision, server_uuid), self._settings.deploy_timeout)

    def start(self, server_uuid: str, node_uuid: str) -> int:
        with self._calls.begin(server_uuid, "start") as call:
            return self._set_power(call, server_uuid, node_uuid, "power on", RUNNING)

    def stop(self, server_uuid: str, node_uuid: str) -> int:
        """Politely first; hardware that knows no politeness, or a system that does not listen, is cut."""
        with self._calls.begin(server_uuid, "stop") as call:
            try:
                return self._set_power(call, server_uuid, node_uuid, "soft power off", SHUT_DOWN)
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
                _require_server(record, server_uuid)
                seen = _power(record)
                return record.reservation is None

            self._settle(call, node_uuid, step, self._settings.power_timeout)
            return seen

    def attach_interface(self, server_uuid: str, node_uuid: str, port: Mapping[str, Any]) -> None:
        port_id = str(port["id"])
        self._set_vif("attach_interface", server_uuid, node_uuid, port_id, attached=True)

    def detach_interface(self, server_uuid: str, node_uuid: str, port_id: str) -> None:
        self._set_vif("detach_interface", server_uuid, node_uuid, port_id, attached=False)

    def _set_vif(self, name: str, server_uuid: str, node_uuid: str, port_id: str, *, attached: bool) -> None:
        """Ironic answers once it is done; but it may be busy, or its answer may get lost."""

        def step(record: NodeRecord) -> bool:
            _require_server(record, server_uuid)
            if (port_id in self._client.vifs(node_uuid)) != attached:
                change = self._client.attach if attached else self._client.detach
                change(node_uuid, port_id)
            return True

        with self._calls.begin(server_uuid, name) as call:
            self._settle(call, node_uuid, step, self._settings.power_timeout)

    def rebuild(self, spec: ServerSpec) -> int:
        with self._calls.begin(spec.uuid, "rebuild") as call, self._watched(spec.uuid):
            self._settle(call, spec.node_uuid, partial(self._rebuild, spec), self._settings.deploy_timeout)
            return self._run(call, spec)

    def hand_over(self, server_uuid: str, node_uuid: str) -> Parcel:
        raise DriverError("a bare-metal server can't leave its machine")

    def take_over(self, spec: ServerSpec, parcel: Parcel) -> int:
        raise DriverError("a bare-metal server can't come from another machine")

    def expect(self, spec: ServerSpec) -> Parcel:
        raise DriverError("a bare-metal server can't come from another machine")

    def live_migrate(self, server_uuid: str, node_uuid: str, destination: Parcel) -> Parcel:
        raise DriverError("a bare-metal server can't leave its machine")

    def abort_live_migration(self, server_uuid: str) -> None:
        """None is ever at work."""

    def hurry_live_migration(self, server_uuid: str) -> None:
        """None is ever at work."""

    def close(self) -> None:
        self._calls.close()
        self.fleet.close()

    def _deploy(self, spec: ServerSpec, record: NodeRecord) -> bool:
        if record.instance_uuid is None:
            why = inventory.unfit(record)
            if why is not None:
                raise DriverError(
                    f"node {record.uuid} can't take a server: {why.value}", retry_elsewhere=True
                )
            self._associate(spec)
            return False
        _require_server(record, spec.uuid)
        self._progress[spec.uuid] = _PROGRESS.get(record.state, 50)
        if record.state == AVAILABLE:
            self._prepare(spec)
            self._validate(record.uuid)
            self._client.provision(record.uuid, ACTIVE, **_config_drive(spec))
            return False
        return _is_deployed(record)

    def _rebuild(self, spec: ServerSpec, record: NodeRecord) -> bool:
        """Ordered once, whoever asks again: the node itself says for which work that was done."""
        _require_server(record, spec.uuid)
        self._progress[spec.uuid] = _PROGRESS.get(record.state, 50)
        if record.state in (DEPLOYING, WAITING):
            return False
        if deployment.is_rebuilt(spec, record):
            return _is_deployed(record)
        self._client.change(record.uuid, [_info(deployment.rebuild_info(spec, record))])
        self._client.provision(record.uuid, REBUILD, **_config_drive(spec))
        return False

    def _unprovision(self, server_uuid: str, record: NodeRecord) -> bool:
        if record.instance_uuid != server_uuid or record.state in UNUSED_STATES - {AVAILABLE}:
            return True
        if record.state == AVAILABLE:
            remove = ({"op": "remove", "path": path} for path in ("/instance_uuid", "/instance_info"))
            self._client.change(record.uuid, list(remove))
        elif record.state not in (DEPLOYING, DELETING):
            # Also from states that we don't know: only Ironic can say that this is not possible.
            try:
                self._client.provision(record.uuid, "deleted")
            except IronicError as error:
                if error.status == 400:  # its state has changed since we looked
                    raise BusyError(str(error), error.status) from error
                raise
        return False

    def _set_power(self, call: Call, server_uuid: str, node_uuid: str, target: str, power: int) -> int:
        asked = False
        restarts = "reboot" in target

        def step(record: NodeRecord) -> bool:
            nonlocal asked
            _require_server(record, server_uuid)
            if record.reservation is not None or record.target_power_state is not None:
                return False
            if _power(record) == power and (asked or not restarts):
                return True
            if asked:
                raise DriverError(f"{target}: {record.last_error or 'it had no effect'}")
            self._client.set_power(node_uuid, target)
            asked = True
            return False

        self._settle(call, node_uuid, step, self._settings.power_timeout)
        return power

    def _settle(self, call: Call, node_uuid: str, step: Step, seconds: float) -> None:
        """Take the step until nothing is left to do, with patience for a node that is locked for a while."""
        deadline = time.monotonic() + seconds
        failures = 0
        while True:
            self._calls.check(call)
            self._require(call, node_uuid)
            try:
                record = self.examine(node_uuid)
                if record is None:
                    raise DriverError(f"Ironic has no node {node_uuid}", retry_elsewhere=True)
                if step(record):
                    return
                failures = 0
            except BusyError as error:
                failures += 1
                if failures > self._settings.retries:
                    raise DriverError(str(error), retry_elsewhere=True) from error
            except IronicError as error:
                raise DriverError(str(error), retry_elsewhere=True) from error
            if time.monotonic() > deadline:
                raise DriverError(
                    f"node {node_uuid} was not done after {seconds:.0f} s", retry_elsewhere=True
                )
            call.wait(self._settings.poll_interval)

    def _owns(self, call: Call, node_uuid: str) -> bool:
        owns = self.fleet.owns(node_uuid, self._settings.ownership_patience)
        self._calls.check(call)
        return owns

    def _require(self, call: Call, node_uuid: str) -> None:
        """Another host may have got the node since: then it is that one's to work on."""
        if not self._owns(call, node_uuid):
            raise NotOursError(node_uuid)

    def _run(self, call: Call, spec: ServerSpec) -> int:
        if spec.power_on:
            return self._set_power(call, spec.uuid, spec.node_uuid, "power on", RUNNING)
        return self._set_power(call, spec.uuid, spec.node_uuid, "power off", SHUT_DOWN)

    def _leave_other_node(self, call: Call, spec: ServerSpec) -> None:
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
            if self._owns(call, found):
                self._settle(
                    call, found, partial(self._unprovision, spec.uuid), self._settings.deploy_timeout
                )
            else:
                call.wait(self._settings.poll_interval)
        raise DriverError(f"the server does not leave node {found}", retry_elsewhere=True)

    def _node_with(self, call: Call, server_uuid: str) -> str | None:
        for look in range(self._settings.retries):
            self._calls.check(call)
            try:
                return self._client.node_with(server_uuid)
            except BusyError as error:
                if look == 0:
                    LOG.warning("Ironic can't be asked yet where server %s is: %s", server_uuid, error)
                call.wait(self._settings.poll_interval)
            except IronicError as error:
                raise DriverError(str(error)) from error
        raise DriverError(f"Ironic does not say where server {server_uuid} is", retry_elsewhere=True)

    def _undo(self, spec: ServerSpec) -> None:
        """Give the node back after a failure; what can't be done now is done when a conductor asks for it."""
        with contextlib.suppress(DriverError):
            self.destroy(spec.uuid, spec.node_uuid)

    def _associate(self, spec: ServerSpec) -> None:
        """The node is the server's from now on; of two that try, one gets it."""
        associate = {"op": "add", "path": "/instance_uuid", "value": spec.uuid}
        self._client.change(spec.node_uuid, [associate, _info(deployment.instance_info(spec))])

    def _prepare(self, spec: ServerSpec) -> None:
        """What is left to do once the node is the server's, and before it is deployed."""
        self._attach(spec)

    def _attach(self, spec: ServerSpec) -> None:
        wanted = [str(port["id"]) for port in spec.network]
        attached = self._client.vifs(spec.node_uuid) if wanted else set()
        for port_id in wanted:
            if port_id not in attached:
                self._client.attach(spec.node_uuid, port_id)

    def _validate(self, node_uuid: str) -> None:
        objections = self._client.objections(node_uuid, _VALIDATED)
        if objections:
            told = "; ".join(f"{name}: {reason}" for name, reason in objections.items())
            raise DriverError(f"node {node_uuid} can't be deployed: {told}", retry_elsewhere=True)

    @contextlib.contextmanager
    def _watched(self, server_uuid: str) -> Iterator[None]:
        self._progress[server_uuid] = 0
        try:
            yield
        finally:
            self._progress.pop(server_uuid, None)


def _power(record: NodeRecord) -> int:
    return _POWERS.get(record.power_state or "", NO_STATE)


def _info(value: dict[str, Any]) -> dict[str, object]:
    return {"op": "add", "path": "/instance_info", "value": value}


def _config_drive(spec: ServerSpec) -> dict[str, object]:
    return {"configdrive": deployment.config_drive(spec)} if spec.config_drive else {}


def _require_server(record: NodeRecord, server_uuid: str) -> None:
    if record.instance_uuid != server_uuid:
        raise DriverError(
            f"node {record.uuid} has server {record.instance_uuid}, not {server_uuid}", retry_elsewhere=True
        )


def _is_deployed(record: NodeRecord) -> bool:
    if record.state == ACTIVE:
        return True
    if record.state in (DEPLOY_FAILED, ERROR) or record.state in UNUSED_STATES or record.state == DELETING:
        told = record.last_error or f"the node is in state {record.state!r}"
        raise DriverError(f"node {record.uuid} could not be deployed: {told}", retry_elsewhere=True)
    return False
