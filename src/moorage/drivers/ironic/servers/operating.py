"""The steps by which something is done to a server's node while it is in use."""

from __future__ import annotations

import contextlib
import logging

from moorage.drivers.contract import NO_STATE, RUNNING, SHUT_DOWN, DriverError, MachineFailedError
from moorage.drivers.ironic.api.client import IronicClient, IronicError
from moorage.drivers.ironic.api.record import ACTIVE, POWER_OFF, POWER_ON, NodeRecord
from moorage.drivers.ironic.api.writer import Writer
from moorage.drivers.ironic.servers.deploying import require_server

LOG = logging.getLogger(__name__)

_POWERS = {POWER_ON: RUNNING, POWER_OFF: SHUT_DOWN}


def power_of(record: NodeRecord) -> int:
    return _POWERS.get(record.power_state or "", NO_STATE)


class Powering:
    """Asks once for `target`, and is done when the node has the power state that follows from it."""

    def __init__(
        self, server_uuid: str, target: str, power: int, client: IronicClient, writer: Writer
    ) -> None:
        self._server_uuid = server_uuid
        self._target = target
        self._power = power
        self._client = client
        self._writer = writer
        self._tried = False
        self._asked = False

    def __call__(self, record: NodeRecord) -> bool:
        self.compensate(record)
        require_server(record, self._server_uuid)
        if record.reservation is not None or record.target_power_state is not None:
            return False
        if power_of(record) == self._power and (self._asked or "reboot" not in self._target):
            return True
        if self._asked:
            raise MachineFailedError(f"{self._target}: {record.last_error or 'it had no effect'}")
        self._tried = True
        self._writer.set_power(self._target)
        self._asked = True
        return False

    def compensate(self, record: NodeRecord) -> None:
        """If our call was delayed, what we switched off was another server's."""
        others = record.instance_uuid not in (None, self._server_uuid) and record.state == ACTIVE
        if others and self._tried and self._power == SHUT_DOWN:
            LOG.warning("node %s is another server's by now, and is switched on again", record.uuid)
            with contextlib.suppress(IronicError):
                self._client.set_power(record.uuid, POWER_ON)


class Interrupting:
    """Ironic answers once the machine was told: a system that has crashed is not told again."""

    def __init__(self, server_uuid: str, writer: Writer) -> None:
        self._server_uuid = server_uuid
        self._writer = writer

    def __call__(self, record: NodeRecord) -> bool:
        require_server(record, self._server_uuid)
        if power_of(record) != RUNNING:
            raise DriverError("the server does not run")
        self._writer.inject_nmi()
        return True


class VifChange:
    """Ironic answers once it is done; but it may be busy, or its answer may get lost."""

    def __init__(
        self, server_uuid: str, port_id: str, client: IronicClient, writer: Writer, *, attached: bool
    ) -> None:
        self._server_uuid = server_uuid
        self._port_id = port_id
        self._client = client
        self._writer = writer
        self._attached = attached
        self._tried = False
        self._asked = False

    def __call__(self, record: NodeRecord) -> bool:
        self.compensate(record)
        require_server(record, self._server_uuid)
        if self._asked or (self._port_id in self._client.vifs(record.uuid)) == self._attached:
            return True
        change = self._writer.attach if self._attached else self._writer.detach
        self._tried = True
        change(self._port_id)
        self._asked = True
        return False

    def compensate(self, record: NodeRecord) -> None:
        """If our call was delayed, the port is on another server's node."""
        if record.instance_uuid != self._server_uuid and self._tried and self._attached:
            with contextlib.suppress(IronicError):
                self._client.detach(record.uuid, self._port_id)
