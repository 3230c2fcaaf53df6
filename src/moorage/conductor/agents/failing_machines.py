"""What hosts and conductors tell each other about machines that fail."""

from __future__ import annotations

import msgspec
from sqlalchemy.engine import Connection

from moorage.bus.contract import AVOID, Heartbeat, Task
from moorage.compute.hosts import machine_failures
from moorage.drivers.machine_failures import KNOWN, POLICY, MachineFailure, QuarantinePolicy


def follow(connection: Connection, heartbeat: Heartbeat) -> list[Task]:
    """Write down what a host tells, and tell it what it does not know."""
    if POLICY not in heartbeat.facts:
        return []
    policy = msgspec.convert(heartbeat.facts[POLICY], QuarantinePolicy)
    told = [MachineFailure(**msgspec.structs.asdict(failure)) for failure in heartbeat.failures]
    machine_failures.record(connection, heartbeat.host, told, policy)
    machine_failures.release(connection, heartbeat.mended)
    avoided = machine_failures.avoided(connection, policy.window)
    if heartbeat.facts.get(KNOWN) == avoided.digest():
        return []
    return [Task(0, "", AVOID, 0, "", avoided.said())]
