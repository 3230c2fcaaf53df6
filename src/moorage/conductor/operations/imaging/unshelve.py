"""Unshelve: a shelved server runs again, on its host, or if that has given it up, on a new one.

As a build from the image that it is shelved in, with the ports that it has. If no host will do, it is as it
was.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from moorage.compute.imaging import discarding
from moorage.compute.imaging.discarding import SHELVED_IMAGE
from moorage.compute.imaging.shelving import DROPPED_GENERATION
from moorage.compute.servers import actions
from moorage.compute.servers.actions import Event
from moorage.compute.servers.fault import fault
from moorage.compute.servers.server import Server
from moorage.compute.servers.states import VmState
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.build import Build, BuildState
from moorage.conductor.operations.guests.host_task import HostTask
from moorage.conductor.placing import dropping
from moorage.images.contract import ImageNotFoundError

_EVENT = "compute_unshelve_instance"
_LATE = "prepare_late"
"""A step of builds: ports are there from the start here."""


class UnshelveState(BuildState, kw_only=True, omit_defaults=True):
    image_id: str
    image: dict[str, Any] = {}
    """As it was found when this began."""


class Unshelve(Build):
    name = "unshelve"
    state = UnshelveState
    steps = tuple(
        step._replace(then=tuple(then for then in step.then if then != _LATE))
        for step in Build.steps
        if step.name != _LATE
    )
    notification = "unshelve"
    event = _EVENT

    def begin(self, batch: Sequence[Work[Any]]) -> None:
        for work in batch:
            try:
                found = self._tools.images.find(work.state.image_id)
            except ImageNotFoundError:
                work.state.last_error = f"the image that it is shelved in, {work.state.image_id}, is gone"
                work.advance("fail")
            else:
                work.state.image = msgspec.to_builtins(found)
                work.go_on("schedule")

    def spec(self, work: Work[Any], **differences: Any) -> dict[str, Any]:
        return super().spec(work, image=work.state.image, **differences)

    def _running(self, work: Work[Any]) -> None:
        super()._running(work)
        _forget_image(work)

    def fail(self, batch: Sequence[Work[Any]]) -> None:
        """Late, it drops nothing that was claimed since."""
        for work in batch:
            dropped = dropping.drop(self._tools.placement, work, work.state.dropped)
            if dropped is None:
                continue
            error = work.state.last_error or ""
            work.changes |= {
                "vm_state": VmState.SHELVED_OFFLOADED.value,
                "task_state": None,
                "fault": fault(error),
                "request": {**work.server.request, DROPPED_GENERATION: dropped},
            }
            event = Event(work.operation.action_id, self.event, work.server.host, error)
            work.write_together(actions.add_events, event)
            work.fail(error)

    def give_up(self, work: Work[Any], error: str) -> None:
        """Before it has a place, it is what it was; later, what it holds is left for a delete."""
        super().give_up(work, error)
        if work.state.placed is None:
            work.changes = {"task_state": None}


class UnshelveHere(HostTask):
    """On the host that it is still on."""

    name = "unshelve_here"
    task = "start"
    notification = "unshelve"
    event = _EVENT
    state_after = VmState.ACTIVE

    def succeed(self, work: Work[Any], facts: dict[str, Any]) -> None:
        super().succeed(work, facts)
        _forget_image(work)


def _forget_image(work: Work[Any]) -> None:
    """The server has its own disk again."""
    request = dict(work.changes.get("request", work.server.request))
    image_id = str(request.pop(SHELVED_IMAGE)["id"])
    work.changes["request"] = request
    work.writes.append(partial(_discard, work.server, image_id))


def _discard(server: Server, image_id: str, connection: Connection) -> None:
    discarding.discard(connection, server, image_id, even_whole=True)
