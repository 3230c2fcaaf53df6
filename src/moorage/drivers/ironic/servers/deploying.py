"""The steps by which a node gets a server: each looks at the node and does the next thing."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from moorage.drivers.contract import DriverError, MachineFailedError, ServerSpec, UnchangedError
from moorage.drivers.ironic.api.client import BusyError, IronicClient, IronicError
from moorage.drivers.ironic.api.record import (
    ACTIVE,
    AVAILABLE,
    DELETING,
    DEPLOY_FAILED,
    DEPLOYING,
    ERROR,
    PROTECTION,
    UNUSED_STATES,
    WAITING,
    NodeRecord,
)
from moorage.drivers.ironic.api.writer import Writer
from moorage.drivers.ironic.nodes import inventory
from moorage.drivers.ironic.servers import deployment, machine_links
from moorage.drivers.ironic.servers import mark as marks
from moorage.drivers.ironic.servers.console_log import ConsoleLog
from moorage.drivers.ironic.servers.mark import Mark
from moorage.drivers.ironic.servers.removing import Removing

LOG = logging.getLogger(__name__)

_REBUILDABLE = frozenset({ACTIVE, DEPLOY_FAILED, ERROR})
"""Where Ironic takes the order."""
_PROGRESS = {AVAILABLE: 10, DEPLOYING: 30, WAITING: 60, ACTIVE: 90}
_VALIDATED = ("boot", "deploy", "network", "power", "storage")

Progress = Callable[[int], None]


class _Finishing:
    """What a deployment needs, however it came about, before the server counts as there."""

    def __init__(
        self, spec: ServerSpec, mark: Mark, client: IronicClient, writer: Writer, progress: Progress
    ) -> None:
        self._spec = spec
        self._mark = mark
        self._client = client
        self._writer = writer
        self._progress = progress
        self._may_protect = True

    def _with_links(self, node_uuid: str) -> ServerSpec:
        """With what the guest has to know of its ports: at which cards of the machine they are."""
        if not (self._spec.config_drive and self._spec.network):
            return self._spec
        ports, groups = self._client.ports(node_uuid), self._client.port_groups(node_uuid)
        return msgspec.structs.replace(
            self._spec, network=machine_links.seen(self._spec.network, ports, groups)
        )

    def _note(self, record: NodeRecord) -> None:
        self._progress(_PROGRESS.get(record.state, 50))

    def _is_finished(self, record: NodeRecord) -> bool:
        """Deployed, and protected from calls that were delayed."""
        if not _is_deployed(record):
            return False
        if record.protected or not self._may_protect or self._client.version() < PROTECTION:
            return True
        try:
            self._writer.protect(self._mark)
        except IronicError as error:
            if error.status != 403:
                raise
            LOG.warning("node %s stays unprotected, this account may not protect it: %s", record.uuid, error)
            self._may_protect = False
        return False


class Deploying(_Finishing):
    def __init__(
        self,
        spec: ServerSpec,
        mark: Mark,
        client: IronicClient,
        writer: Writer,
        progress: Progress,
        console_log: ConsoleLog,
        *,
        reserved: bool = False,
    ) -> None:
        """A node that is `reserved` becomes the server's in no other way."""
        super().__init__(spec, mark, client, writer, progress)
        self._reserved = reserved
        self._console_log = console_log
        self._plugged = False
        self._told = False
        """Whether what is written down says at which cards the ports are."""
        self._attached: set[str] = set()

    def __call__(self, record: NodeRecord) -> bool:
        if record.instance_uuid is None and not self._attached:
            self._take(record)
            return False
        self.compensate(record)
        require_server(record, self._spec.uuid)
        self._note(record)
        seen = marks.read(record)
        if seen is None or seen.key != self._mark.key:
            self._replace(record, seen)
            return False
        if record.state == AVAILABLE:
            self._plug()
            if not self._told:
                self._tell(record)
                return False
            self._validate(record.uuid)
            self._writer.deploy()
            return False
        if record.state in (WAITING, ACTIVE):
            self._plug()  # a delayed call of another host may have been quicker than we
        return self._is_finished(record)

    def _take(self, record: NodeRecord) -> None:
        if self._reserved:
            raise DriverError(f"node {record.uuid} is not reserved any more", retry_elsewhere=True)
        why = inventory.unfit(record)
        if why is not None:
            raise DriverError(f"node {record.uuid} can't take a server: {why.value}", retry_elsewhere=True)
        self._writer.associate(self._mark, self._info(record))

    def _replace(self, record: NodeRecord, seen: Mark | None) -> None:
        """Another attempt's deployment is not ours, even if it looks the same."""
        if record.state == AVAILABLE:
            self._writer.rewrite(self._mark, self._info(record), seen)
            return
        LOG.warning("node %s was deployed by an earlier attempt, and is torn down first", record.uuid)
        Removing(self._spec.uuid, self._client, self._writer)(record)

    def compensate(self, record: NodeRecord) -> None:
        """If the node is not the server's any more, its ports may have come after it left."""
        for port_id in self._attached if record.instance_uuid != self._spec.uuid else ():
            with contextlib.suppress(IronicError):
                self._client.detach(record.uuid, port_id)

    def _plug(self) -> None:
        """The ports of the server, and none that a delayed call for another one has brought."""
        if self._plugged:
            return
        wanted = [str(port["id"]) for port in self._spec.network]
        attached = self._client.vifs(self._spec.node_uuid)
        for port_id in attached.difference(wanted):
            self._writer.detach(port_id)
        for port_id in wanted:
            if port_id not in attached:
                self._attached.add(port_id)
                self._writer.attach(port_id)
        self._plugged = True

    def _info(self, record: NodeRecord, spec: ServerSpec | None = None) -> dict[str, Any]:
        """All that is written down on the node."""
        begun = self._console_log.begin(record, self._spec.uuid)
        return deployment.whole_info(spec or self._spec, self._mark) | begun

    def _tell(self, record: NodeRecord) -> None:
        """Only now is it known which port is at which card. Whoever orders the deployment has done this
        before, so that an order that is delayed finds it written down."""
        spec = self._with_links(record.uuid)
        if spec.network != machine_links.real(self._spec.network):
            self._writer.rewrite(self._mark, self._info(record, spec), self._mark)
        self._told = True

    def _validate(self, node_uuid: str) -> None:
        objections = self._client.objections(node_uuid, _VALIDATED)
        if objections:
            told = "; ".join(f"{name}: {reason}" for name, reason in objections.items())
            raise MachineFailedError(f"node {node_uuid} can't be deployed: {told}")


class Rebuilding(_Finishing):
    """Ordered once, whoever asks again: the node itself says for which work that was done."""

    _before: dict[str, Any] | None = None
    """What was written down on the node."""

    def __call__(self, record: NodeRecord) -> bool:
        require_server(record, self._spec.uuid)
        self._note(record)
        if record.state in (DEPLOYING, WAITING):
            return False
        if deployment.is_rebuilt(self._spec, record):
            return self._is_finished(record)
        self._require_rebuildable(record)
        self._before = self._before or dict(record.instance_info)
        info = self._info(record)
        self._writer.prepare_rebuild(self._mark, info, marks.read(record), unprotect=record.protected)
        self._give_order(record, info)
        return False

    def _require_rebuildable(self, record: NodeRecord) -> None:
        """What Ironic would refuse is refused here, before anything is written down."""
        if record.protected and not marks.is_protected_by_us(record):
            why = f"is protected in Ironic: {record.protected_reason or ''}"
        elif record.maintenance:
            why = "is in maintenance"
        elif record.state not in _REBUILDABLE:
            why = f"is in state {record.state!r}"
        else:
            return
        raise UnchangedError(f"node {record.uuid} {why}")

    def _info(self, record: NodeRecord) -> dict[str, Any]:
        try:
            return deployment.rebuild_info(self._with_links(record.uuid), self._mark, record)
        except DriverError as error:
            raise UnchangedError(str(error)) from error

    def _give_order(self, record: NodeRecord, info: dict[str, Any]) -> None:
        """If it is refused, the node says again what it said before, but for what Ironic does not tell."""
        try:
            self._writer.rebuild()
        except BusyError:
            raise
        except IronicError as error:
            before = deployment.told(self._before)
            added = info.keys() - (self._before or {}).keys() - deployment.OURS
            self._writer.restore(self._mark, before, added, protect=record.protected)
            raise UnchangedError(str(error)) from error


def require_server(record: NodeRecord, server_uuid: str) -> None:
    if record.instance_uuid != server_uuid:
        raise DriverError(
            f"node {record.uuid} has server {record.instance_uuid}, not {server_uuid}", retry_elsewhere=True
        )


def _is_deployed(record: NodeRecord) -> bool:
    if record.state == ACTIVE:
        return True
    if record.state in (DEPLOY_FAILED, ERROR) or record.state in UNUSED_STATES or record.state == DELETING:
        told = record.last_error or f"the node is in state {record.state!r}"
        raise MachineFailedError(f"node {record.uuid} could not be deployed: {told}")
    return False
