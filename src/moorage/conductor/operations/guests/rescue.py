"""Rescue, and back: the server boots from another image, with its own disk as a further one."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.compute.servers import server_spec
from moorage.compute.servers.states import VmState
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.guests.host_task import HostTask


class RescueState(msgspec.Struct):
    image: dict[str, Any] | None
    """The one that it boots from; the server keeps its own."""


class Rescue(HostTask):
    name = "rescue"
    state = RescueState
    notification = "rescue"
    event = "compute_rescue_instance"
    state_after = VmState.RESCUED

    def payload(self, work: Work[RescueState]) -> dict[str, Any]:
        return {"spec": server_spec.of(work.server, image=work.state.image)}


class Unrescue(HostTask):
    name = "unrescue"
    notification = "unrescue"
    event = "compute_unrescue_instance"
    state_after = VmState.ACTIVE
