"""Start, stop, reboot."""

from __future__ import annotations

import msgspec

from moorage.compute.servers.states import VmState
from moorage.conductor.operations.guests.host_task import HostTask


class PowerState(msgspec.Struct, omit_defaults=True):
    hard: bool = False
    """Of a reboot: the machine is not asked politely."""


class Power(HostTask):
    state = PowerState
    state_after = VmState.ACTIVE


class Start(Power):
    name = "start"
    notification = "power_on"
    event = "compute_start_instance"


class Stop(Power):
    name = "stop"
    notification = "power_off"
    event = "compute_stop_instance"
    state_after = VmState.STOPPED


class Reboot(Power):
    name = "reboot"
    notification = "reboot"
    event = "compute_reboot_instance"
