"""Soft delete, and back: the server is shut down and kept for a while; its quota is free meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from moorage.compute.servers import soft_deletes
from moorage.compute.servers.server import Server
from moorage.compute.servers.states import VmState
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.guests.host_task import HostTask


class SoftDeleteState(msgspec.Struct):
    interval: int
    """Seconds until it goes for good."""


class SoftDelete(HostTask):
    name = "soft_delete"
    state = SoftDeleteState
    task = "stop"
    notification = "soft_delete"
    event = "compute_soft_delete_instance"
    state_after = VmState.SOFT_DELETED

    def begin(self, batch: Sequence[Work[Any]]) -> None:
        """A host that is down has it shut down, too, or will not be asked for it any more."""
        up = self._tools.hosts.up()
        for work in batch:
            if work.server.host not in up:
                self.succeed(work, {})
        super().begin([work for work in batch if work.outcome is None])

    def payload(self, work: Work[Any]) -> dict[str, Any]:
        return {}

    def succeed(self, work: Work[Any], facts: dict[str, Any]) -> None:
        super().succeed(work, facts)
        work.writes.append(partial(_reclaim_later, work.server, work.state.interval))


class Restore(HostTask):
    name = "restore"
    state = SoftDeleteState
    task = "start"
    notification = "restore"
    event = "compute_restore_instance"
    state_after = VmState.ACTIVE

    def payload(self, work: Work[Any]) -> dict[str, Any]:
        return {}

    def give_up(self, work: Work[Any], error: str) -> None:
        """It stays deleted."""
        super().give_up(work, error)
        work.writes.append(partial(_reclaim_later, work.server, work.state.interval))


def _reclaim_later(server: Server, interval: int, connection: Connection) -> None:
    soft_deletes.reclaim_later(connection, server, interval)
