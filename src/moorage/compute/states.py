"""The states of a server: what it is, what is being done to it, and the API's word for both."""

from __future__ import annotations

from enum import StrEnum


class VmState(StrEnum):
    BUILDING = "building"
    ACTIVE = "active"
    STOPPED = "stopped"
    ERROR = "error"
    DELETED = "deleted"


class TaskState(StrEnum):
    SCHEDULING = "scheduling"
    PENDING = "pending"
    """No host fits now; tried again when capacity appears."""
    NETWORKING = "networking"
    SPAWNING = "spawning"
    DELETING = "deleting"
    POWERING_ON = "powering-on"
    POWERING_OFF = "powering-off"
    REBOOTING = "rebooting"
    REBOOTING_HARD = "rebooting_hard"


class PowerNumber:
    """As the API numbers power states."""

    NONE = 0
    RUNNING = 1
    SHUT_DOWN = 4


_BY_TASK = {
    (VmState.ACTIVE, TaskState.REBOOTING): "REBOOT",
    (VmState.ACTIVE, TaskState.REBOOTING_HARD): "HARD_REBOOT",
    (VmState.STOPPED, TaskState.REBOOTING_HARD): "HARD_REBOOT",
    (VmState.ERROR, TaskState.REBOOTING_HARD): "HARD_REBOOT",
}
_BY_STATE = {
    VmState.BUILDING: "BUILD",
    VmState.ACTIVE: "ACTIVE",
    VmState.STOPPED: "SHUTOFF",
    VmState.ERROR: "ERROR",
    VmState.DELETED: "DELETED",
}


def status(vm_state: str, task_state: str | None) -> str:
    """The status that users see."""
    vm = VmState(vm_state)
    if task_state is not None:
        busy = _BY_TASK.get((vm, TaskState(task_state)))
        if busy is not None:
            return busy
    return _BY_STATE[vm]
