"""The states of a server: what it is, what is being done to it, and the API's word for both."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class VmState(StrEnum):
    BUILDING = "building"
    ACTIVE = "active"
    STOPPED = "stopped"
    PAUSED = "paused"
    SUSPENDED = "suspended"
    RESCUED = "rescued"
    """Boots from another image, with its own disk as a further one."""
    RESIZED = "resized"
    """Moved, and waiting for its user to confirm that all is well there."""
    SHELVED = "shelved"
    """An image has what was on its disk; it is shut down, and still on its host."""
    SHELVED_OFFLOADED = "shelved_offloaded"
    """That image is all that is left of it: it is on no host."""
    SOFT_DELETED = "soft-delete"
    """Shut down, and deleted for good after a while, unless its user restores it."""
    ERROR = "error"
    DELETED = "deleted"


class TaskState(StrEnum):
    SCHEDULING = "scheduling"
    PENDING = "pending"
    """No host fits now; tried again when capacity appears."""
    NETWORKING = "networking"
    SPAWNING = "spawning"
    DELETING = "deleting"
    SOFT_DELETING = "soft-deleting"
    RESTORING = "restoring"
    POWERING_ON = "powering-on"
    POWERING_OFF = "powering-off"
    REBOOTING = "rebooting"
    REBOOTING_HARD = "rebooting_hard"
    PAUSING = "pausing"
    UNPAUSING = "unpausing"
    SUSPENDING = "suspending"
    RESUMING = "resuming"
    RESCUING = "rescuing"
    UNRESCUING = "unrescuing"
    UPDATING_PASSWORD = "updating_password"
    IMAGE_SNAPSHOT_PENDING = "image_snapshot_pending"
    IMAGE_SNAPSHOT = "image_snapshot"
    IMAGE_BACKUP = "image_backup"
    IMAGE_UPLOADING = "image_uploading"
    SHELVING = "shelving"
    SHELVING_IMAGE_UPLOADING = "shelving_image_uploading"
    SHELVING_OFFLOADING = "shelving_offloading"
    UNSHELVING = "unshelving"
    REBUILDING = "rebuilding"
    REBUILD_SPAWNING = "rebuild_spawning"
    RESIZE_PREP = "resize_prep"
    RESIZE_MIGRATING = "resize_migrating"
    RESIZE_MIGRATED = "resize_migrated"
    RESIZE_FINISH = "resize_finish"
    RESIZE_CONFIRMING = "resize_confirming"
    RESIZE_REVERTING = "resize_reverting"
    MIGRATING = "migrating"
    ATTACHING_INTERFACE = "attaching_interface"
    DETACHING_INTERFACE = "detaching_interface"


class PowerNumber:
    """As the API numbers power states."""

    NONE = 0
    RUNNING = 1
    PAUSED = 3
    SHUT_DOWN = 4
    CRASHED = 6
    SUSPENDED = 7


_REBUILDS = (TaskState.REBUILDING, TaskState.REBUILD_SPAWNING)
_RESIZES = (
    TaskState.RESIZE_PREP,
    TaskState.RESIZE_MIGRATING,
    TaskState.RESIZE_MIGRATED,
    TaskState.RESIZE_FINISH,
)
_BY_TASK = {
    (VmState.ACTIVE, TaskState.REBOOTING): "REBOOT",
    (VmState.ACTIVE, TaskState.REBOOTING_HARD): "HARD_REBOOT",
    (VmState.STOPPED, TaskState.REBOOTING_HARD): "HARD_REBOOT",
    (VmState.ERROR, TaskState.REBOOTING_HARD): "HARD_REBOOT",
    (VmState.ACTIVE, TaskState.UPDATING_PASSWORD): "PASSWORD",
    (VmState.ACTIVE, TaskState.MIGRATING): "MIGRATING",
    (VmState.PAUSED, TaskState.MIGRATING): "MIGRATING",
    (VmState.RESIZED, TaskState.RESIZE_REVERTING): "REVERT_RESIZE",
    **{(vm, task): "RESIZE" for vm in (VmState.ACTIVE, VmState.STOPPED) for task in _RESIZES},
    **{
        (vm, task): "REBUILD" for vm in (VmState.ACTIVE, VmState.STOPPED, VmState.ERROR) for task in _REBUILDS
    },
}
_BY_STATE = {
    VmState.BUILDING: "BUILD",
    VmState.ACTIVE: "ACTIVE",
    VmState.STOPPED: "SHUTOFF",
    VmState.PAUSED: "PAUSED",
    VmState.SUSPENDED: "SUSPENDED",
    VmState.RESCUED: "RESCUE",
    VmState.RESIZED: "VERIFY_RESIZE",
    VmState.SHELVED: "SHELVED",
    VmState.SHELVED_OFFLOADED: "SHELVED_OFFLOADED",
    VmState.SOFT_DELETED: "SOFT_DELETED",
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


STATUSES = frozenset({*_BY_STATE.values(), *_BY_TASK.values()})
"""All that the API knows."""


def states_of(statuses: Iterable[str]) -> tuple[list[str], list[str] | None]:
    """The states that a list by status looks for; None for the second means any.

    As in the API a status that stands for a state as such also finds the servers that are being worked on.
    """
    wanted = {status.upper() for status in statuses}
    whole = [vm for vm, status in _BY_STATE.items() if status in wanted]
    busy = [pair for pair, status in _BY_TASK.items() if status in wanted]
    vm_states = sorted({str(vm) for vm in whole} | {str(vm) for vm, _ in busy})
    return vm_states, None if whole or not busy else sorted({str(task) for _, task in busy})
