"""The steps by which a node loses a server."""

from __future__ import annotations

import logging

from moorage.drivers.contract import DriverError
from moorage.drivers.ironic.api.client import BusyError, IronicClient, IronicError
from moorage.drivers.ironic.api.record import (
    AVAILABLE,
    DELETING,
    DEPLOYED_STATES,
    DEPLOYING,
    RESCUING,
    UNRESCUING,
    UNUSED_STATES,
    NodeRecord,
)
from moorage.drivers.ironic.api.writer import Writer
from moorage.drivers.ironic.servers import mark as marks
from moorage.drivers.ironic.servers.mark import Mark

LOG = logging.getLogger(__name__)
_LEAVING = "leaving"


class Removing:
    """What is written down on the node goes before the node is released, or with it."""

    def __init__(
        self, server_uuid: str, client: IronicClient, writer: Writer, *, reserved: bool = False
    ) -> None:
        self._server_uuid = server_uuid
        self._client = client
        self._writer = writer
        self._reserved = reserved

    def __call__(self, record: NodeRecord) -> bool:
        if record.instance_uuid != self._server_uuid or record.state in UNUSED_STATES - {AVAILABLE}:
            return True
        if record.state == AVAILABLE:
            return self._release(record)
        if record.state in (DEPLOYING, DELETING, RESCUING, UNRESCUING):
            return False
        # Also from states that we don't know: only Ironic can say that this is not possible.
        if marks.is_protected_by_us(record):
            self._writer.unprotect(self._server_uuid, marks.read(record))
        elif record.protected:
            raise DriverError(f"node {record.uuid} is protected in Ironic: {record.protected_reason or ''}")
        else:
            self._writer.tear_down()
        return False

    def _release(self, record: NodeRecord) -> bool:
        seen = marks.read(record)
        if seen is None and self._reserved:
            return True  # nothing is written down yet: to drop the reservation is enough
        if seen is None:
            self._writer.mark(Mark(self._server_uuid, _LEAVING, record.uuid))
            return False
        self._unplug(record)
        self._writer.release(seen)
        return False

    def _unplug(self, record: NodeRecord) -> None:
        """If its network refuses, the machine is given back all the same: what is left attached, the next
        deployment detaches."""
        try:
            for port_id in self._client.vifs(record.uuid):
                self._writer.detach(port_id)
        except BusyError:
            raise
        except IronicError as error:
            LOG.warning("node %s is given back with the ports that it has: %s", record.uuid, error)


class Clearing:
    """A node that is deployed for nobody at all: a call for a server that has left it was delayed."""

    def __init__(self, server_uuid: str, writer: Writer) -> None:
        self._server_uuid = server_uuid
        self._writer = writer

    def __call__(self, record: NodeRecord) -> bool:
        if not is_deployed_for_nobody(record, self._server_uuid):
            return True
        if record.state != DEPLOYING:
            self._writer.tear_down()
        return False


def is_deployed_for_nobody(record: NodeRecord, server_uuid: str) -> bool:
    """An operator who deploys a node by hand writes down what, or for what: such a node is left alone."""
    last = marks.read_last(record)
    return (
        record.state in DEPLOYED_STATES
        and record.instance_uuid is None
        and not record.instance_info
        and not record.protected
        and last is not None
        and last.server_uuid == server_uuid
    )
