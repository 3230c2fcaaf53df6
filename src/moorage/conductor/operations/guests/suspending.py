"""Pause and suspend, and back: the server holds still, in memory or on its disk."""

from __future__ import annotations

from moorage.compute.servers.states import VmState
from moorage.conductor.operations.guests.host_task import HostTask


class Pause(HostTask):
    name = "pause"
    notification = "pause"
    event = "compute_pause_instance"
    state_after = VmState.PAUSED


class Unpause(HostTask):
    name = "unpause"
    notification = "unpause"
    event = "compute_unpause_instance"
    state_after = VmState.ACTIVE


class Suspend(HostTask):
    name = "suspend"
    notification = "suspend"
    event = "compute_suspend_instance"
    state_after = VmState.SUSPENDED


class Resume(HostTask):
    name = "resume"
    notification = "resume"
    event = "compute_resume_instance"
    state_after = VmState.ACTIVE
