"""Crash dump: the system of a server is told to crash, and to write down what was in its memory."""

from __future__ import annotations

from typing import Any

from moorage.conductor.engine.work import Work
from moorage.conductor.operations.guests.host_task import HostTask


class TriggerCrashDump(HostTask):
    """What else is being done to the server meanwhile goes on."""

    name = "trigger_crash_dump"
    notification = "trigger_crash_dump"
    event = "compute_trigger_crash_dump"

    def succeed(self, work: Work[Any], facts: dict[str, Any]) -> None:
        self.note(work)
        work.finish()

    def give_up(self, work: Work[Any], error: str) -> None:
        self.note(work, error)
        work.fail(error)
