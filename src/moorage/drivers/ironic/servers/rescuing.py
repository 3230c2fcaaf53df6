"""The steps by which a server's node is rescued by Ironic's own means, and made itself again."""

from __future__ import annotations

from moorage.core import uuids
from moorage.drivers.contract import RUNNING, DriverError, MachineFailedError, ServerSpec
from moorage.drivers.ironic.api.client import BusyError, IronicClient, IronicError
from moorage.drivers.ironic.api.record import (
    ACTIVE,
    RESCUE,
    RESCUE_CHANGES,
    RESCUE_WAIT,
    RESCUED_STATES,
    RESCUES,
    RESCUING,
    NodeRecord,
)
from moorage.drivers.ironic.api.writer import Writer
from moorage.drivers.ironic.servers import mark as marks
from moorage.drivers.ironic.servers import rescue_mark
from moorage.drivers.ironic.servers.deploying import Progress, require_server
from moorage.drivers.ironic.servers.operating import power_of
from moorage.drivers.ironic.servers.rescue_mark import RescueMark

_NO_RESCUE = "no-rescue"
_PROGRESS = {RESCUING: 30, RESCUE_WAIT: 60, RESCUE: 90}


class RescuingMachine:
    """Ordered once, whoever asks again: the node itself says for which work that was done."""

    def __init__(self, spec: ServerSpec, client: IronicClient, writer: Writer, progress: Progress) -> None:
        self._spec = spec
        self._client = client
        self._writer = writer
        self._progress = progress
        self._order = ""
        """The number of our note of the order."""
        self._refused = False
        self.prepared = False
        self.ran = True
        """Whether the server ran before."""
        self.shall_stop = False
        """Whether it runs from its own disk still, and may end what it does."""

    def prepare(self, record: NodeRecord) -> bool:
        """Until the node says what it is rescued for. What is refused here has changed nothing."""
        require_server(record, self._spec.uuid)
        if record.state in RESCUE_CHANGES or record.reservation is not None:
            return False
        mark = self._mark(record)
        if mark is None or not (self._order or mark.is_taken(record)):
            self._require_rescuable(record)
            self._order = uuids.generate()
            ran = power_of(record) == RUNNING if mark is None else mark.ran
            wanted = RescueMark(self._spec.work, record.provision_updated_at, ran)
            note = rescue_mark.order(self._spec.uuid, self._order)
            self._writer.prepare_rescue(self._spec.uuid, marks.read(record), wanted.written(), note)
            return False
        self.prepared, self.ran = True, mark.ran
        self.shall_stop = record.state == ACTIVE and power_of(record) == RUNNING
        return True

    def __call__(self, record: NodeRecord) -> bool:
        require_server(record, self._spec.uuid)
        self._progress(_PROGRESS.get(record.state, 10))
        if record.state in RESCUE_CHANGES or record.reservation is not None:
            return False
        mark = self._mark(record)
        if mark is None:
            raise DriverError(f"node {record.uuid} was unrescued meanwhile")
        if not mark.is_taken(record):
            self._give_order()
            return False
        note = rescue_mark.order_path(self._order)
        if note in rescue_mark.order_paths(record):
            self._writer.forget(note)
            return False
        if record.state != RESCUE:
            told = record.last_error or f"the node is in state {record.state!r}"
            raise MachineFailedError(f"node {record.uuid} could not be rescued: {told}")
        return True

    def _give_order(self) -> None:
        try:
            self._writer.rescue(self._spec.admin_password)
        except BusyError:
            raise  # it may have been taken all the same
        except IronicError:
            self._refused = True
            raise

    def tidy(self, record: NodeRecord) -> bool:
        """An order that was refused does not come any more."""
        note = rescue_mark.order_path(self._order)
        if self._refused and note in rescue_mark.order_paths(record):
            self._writer.forget(note)
            return False
        return True

    def _mark(self, record: NodeRecord) -> RescueMark | None:
        found = rescue_mark.read(record)
        return found if found is not None and found.work == self._spec.work else None

    def _require_rescuable(self, record: NodeRecord) -> None:
        if self._client.version() < RESCUES or record.rescue_interface in (None, _NO_RESCUE):
            raise DriverError(f"node {record.uuid} has no way to be rescued in Ironic")
        if record.maintenance:
            raise DriverError(f"node {record.uuid} is in maintenance, and can't be rescued")
        if record.state != ACTIVE and record.state not in RESCUED_STATES:
            raise DriverError(f"node {record.uuid} can't be rescued in state {record.state!r}")


class Unrescuing:
    """Also of a node that could not be rescued. One that runs from its own disk is left as it is."""

    def __init__(self, server_uuid: str, writer: Writer) -> None:
        self._server_uuid = server_uuid
        self._writer = writer
        self._asked = False
        self._asked_after: str | None = None

    def __call__(self, record: NodeRecord) -> bool:
        require_server(record, self._server_uuid)
        if record.state in RESCUE_CHANGES or record.reservation is not None:
            return False
        if record.state == ACTIVE:
            return self._is_forgotten(record)
        if record.state not in RESCUED_STATES:
            raise DriverError(f"node {record.uuid} can't be unrescued in state {record.state!r}")
        if self._asked and record.provision_updated_at != self._asked_after:
            told = record.last_error or f"the node is in state {record.state!r}"
            raise MachineFailedError(f"node {record.uuid} could not be unrescued: {told}")
        self._writer.unrescue()
        self._asked, self._asked_after = True, record.provision_updated_at
        return False

    def _is_forgotten(self, record: NodeRecord) -> bool:
        """Whether the node says no longer that it is rescued for anything."""
        mark = rescue_mark.read(record)
        if mark is not None:
            self._writer.forget(mark.path)
        return mark is None
