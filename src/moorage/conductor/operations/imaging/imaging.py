"""What all operations have in common that put what is on a server's disk into an image.

    begin (is the record of the image there?) → … → take (the host is asked) → taken → …

The record is made by the API once the operation is written down, so that none is without one. Until it is
made, nobody looks at the operation; if whoever was to make it dies, the operation ends after a while. One
that fails leaves the record to another operation: the server need not wait for the Image service.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Generic, TypeVar

import msgspec
from sqlalchemy.engine import Connection

from moorage.compute.imaging import discarding
from moorage.compute.servers import actions
from moorage.compute.servers.actions import Event
from moorage.compute.servers.server import Server
from moorage.conductor.engine.work import Done, Failed, Silent, Work
from moorage.conductor.operations.kind import OperationKind
from moorage.images.contract import ImageNotFoundError
from moorage.ledger.declared import Awaited, Wait

WHILE_DISK_IS_SENT = Wait(Awaited.DISK_SENT, patience=3600.0)


class ImagingState(msgspec.Struct, kw_only=True, omit_defaults=True):
    image_id: str
    withdrawn: str | None = None
    """Why the record was not made, as who asked was told."""


I = TypeVar("I", bound=ImagingState)  # noqa: E741


class Imaging(OperationKind, Generic[I]):
    state: ClassVar[type[ImagingState]] = ImagingState
    event: ClassVar[str]
    """What instance actions call it."""

    def begin(self, batch: Sequence[Work[I]]) -> None:
        for work in batch:
            error = work.state.withdrawn or self._objection(work)
            if error is None:
                self.go(work)
            else:
                self.give_up(work, error)

    def _objection(self, work: Work[I]) -> str | None:
        try:
            self._tools.images.find(work.state.image_id)
        except ImageNotFoundError:
            return "the record of its image was not made"
        return None

    def go(self, work: Work[I]) -> None:
        """The record is there."""
        raise NotImplementedError

    def take(self, batch: Sequence[Work[I]]) -> None:
        self._tools.agents.ask(
            batch, "snapshot", then="taken", payload=lambda work: {"image_id": work.state.image_id}
        )

    def taken(self, batch: Sequence[Work[I]]) -> None:
        up = self._tools.hosts.up()
        for work in batch:
            match work.answer():
                case Done():
                    self.kept(work)
                case Failed(error):
                    self.give_up(work, error)
                case Silent() if work.server.host in up:  # a large disk takes its time, on a host that lives
                    work.wait("take", 0.0)
                case Silent():
                    self.give_up(work, "the host went down")

    def kept(self, work: Work[I]) -> None:
        """The image has its data."""
        raise NotImplementedError

    def give_up(self, work: Work[I], error: str) -> None:
        """The server is what it was."""
        work.changes = {"task_state": None}
        work.writes.append(partial(_discard, work.server, work.state.image_id))
        self.note(work, error)
        work.fail(error)

    def note(self, work: Work[I], error: str | None = None) -> None:
        event = Event(work.operation.action_id, self.event, work.server.host, error)
        work.write_together(actions.add_events, event)


def _discard(server: Server, image_id: str, connection: Connection) -> None:
    discarding.discard(connection, server, image_id, even_whole=True)
