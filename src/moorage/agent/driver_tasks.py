"""What tasks ask of a driver, by kind: those that need nothing but it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from moorage.bus.contract import ADMIN_PASSWORD, UNDO_RESIZE, Task
from moorage.drivers.contract import Driver, DriverError, ServerSpec
from moorage.drivers.parts import (
    CrashDumping,
    Lasting,
    LiveMovable,
    Movable,
    Pausable,
    Pluggable,
    Rebuildable,
    Rescuable,
    ResizableInPlace,
    ResizeChecking,
    Snapshottable,
    Suspendable,
    require,
)

Facts = dict[str, Any]
"""What a task found out, for its result."""


def perform(driver: Driver, task: Task) -> Facts:
    """DriverError if it fails, or if the driver has no part for it."""
    work = _KINDS.get(task.kind)
    if work is None:
        raise DriverError(f"this agent knows no task {task.kind!r}")
    return work(driver, task)


def _start(driver: Driver, task: Task) -> Facts:
    return _powered(driver.start(task.server_uuid, task.node_uuid))


def _stop(driver: Driver, task: Task) -> Facts:
    return _powered(driver.stop(task.server_uuid, task.node_uuid))


def _reboot(driver: Driver, task: Task) -> Facts:
    hard = bool(task.payload.get("hard", False))
    return _powered(driver.reboot(task.server_uuid, task.node_uuid, hard=hard))


def _look(driver: Driver, task: Task) -> Facts:
    return _powered(driver.power(task.server_uuid, task.node_uuid))


def _rebuild(driver: Driver, task: Task) -> Facts:
    return made(driver, task, require(driver, Rebuildable).rebuild(_spec(task)))


def _hand_over(driver: Driver, task: Task) -> Facts:
    movable, flavor = require(driver, Movable), task.payload.get("flavor")
    if flavor is not None and isinstance(driver, ResizeChecking):
        driver.check_resize(task.server_uuid, task.node_uuid, flavor)
    return {"parcel": movable.hand_over(task.server_uuid, task.node_uuid)}


def _take_over(driver: Driver, task: Task) -> Facts:
    """What is handed over to the host that it is on gets another flavor there."""
    if task.payload.get("in_place"):
        return made(driver, task, require(driver, ResizableInPlace).resize_in_place(_spec(task)))
    return made(driver, task, require(driver, Movable).take_over(_spec(task), task.payload["parcel"]))


def _keep_resize(driver: Driver, task: Task) -> Facts:
    require(driver, ResizableInPlace).keep_resize(task.server_uuid, task.node_uuid)
    return {}


def _undo_resize(driver: Driver, task: Task) -> Facts:
    require(driver, ResizableInPlace).undo_resize(task.server_uuid, task.node_uuid)
    return {}


def _expect(driver: Driver, task: Task) -> Facts:
    return {"parcel": require(driver, LiveMovable).expect(_spec(task))}


def _live_migrate(driver: Driver, task: Task) -> Facts:
    movable, destination = require(driver, LiveMovable), task.payload["destination"]
    return {"parcel": movable.live_migrate(task.server_uuid, task.node_uuid, destination)}


def _attach_interface(driver: Driver, task: Task) -> Facts:
    require(driver, Pluggable).attach_interface(task.server_uuid, task.node_uuid, task.payload["port"])
    return {}


def _detach_interface(driver: Driver, task: Task) -> Facts:
    port_id = str(task.payload["port_id"])
    require(driver, Pluggable).detach_interface(task.server_uuid, task.node_uuid, port_id)
    return {}


def _pause(driver: Driver, task: Task) -> Facts:
    return _powered(require(driver, Pausable).pause(task.server_uuid, task.node_uuid))


def _unpause(driver: Driver, task: Task) -> Facts:
    return _powered(require(driver, Pausable).unpause(task.server_uuid, task.node_uuid))


def _suspend(driver: Driver, task: Task) -> Facts:
    return _powered(require(driver, Suspendable).suspend(task.server_uuid, task.node_uuid))


def _resume(driver: Driver, task: Task) -> Facts:
    return _powered(require(driver, Suspendable).resume(task.server_uuid, task.node_uuid))


def _rescue(driver: Driver, task: Task) -> Facts:
    spec = msgspec.structs.replace(_spec(task), admin_password=task.secrets.get(ADMIN_PASSWORD, ""))
    return _powered(require(driver, Rescuable).rescue(spec))


def _unrescue(driver: Driver, task: Task) -> Facts:
    return _powered(require(driver, Rescuable).unrescue(task.server_uuid, task.node_uuid))


def _snapshot(driver: Driver, task: Task) -> Facts:
    image_id = str(task.payload["image_id"])
    require(driver, Snapshottable).snapshot(task.server_uuid, task.node_uuid, image_id)
    return {}


def _trigger_crash_dump(driver: Driver, task: Task) -> Facts:
    require(driver, CrashDumping).trigger_crash_dump(task.server_uuid, task.node_uuid)
    return {}


def made(driver: Driver, task: Task, power: int) -> Facts:
    """Of a task that made a server here, or made it anew."""
    if not isinstance(driver, Lasting):
        return _powered(power)
    return {**_powered(power), "hardware": driver.hardware(task.server_uuid, task.node_uuid)}


def _powered(power: int) -> Facts:
    return {"power_state": power}


def _spec(task: Task) -> ServerSpec:
    spec = msgspec.convert(task.payload["spec"], ServerSpec)
    return msgspec.structs.replace(spec, work=str(task.operation_id))


_KINDS: Mapping[str, Callable[[Driver, Task], Facts]] = {
    "start": _start,
    "stop": _stop,
    "reboot": _reboot,
    "look": _look,
    "rebuild": _rebuild,
    "hand_over": _hand_over,
    "take_over": _take_over,
    "keep_resize": _keep_resize,
    UNDO_RESIZE: _undo_resize,
    "expect": _expect,
    "live_migrate": _live_migrate,
    "attach_interface": _attach_interface,
    "detach_interface": _detach_interface,
    "pause": _pause,
    "unpause": _unpause,
    "suspend": _suspend,
    "resume": _resume,
    "rescue": _rescue,
    "unrescue": _unrescue,
    "snapshot": _snapshot,
    "trigger_crash_dump": _trigger_crash_dump,
}
