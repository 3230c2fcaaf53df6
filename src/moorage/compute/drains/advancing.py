"""How a drain or a rebalance goes on: whoever looks writes down what has ended, and begins as much as may.

A move that begins is an operation of the ledger, written in the transaction that counts it: whoever is killed
here has either begun it or not, and nobody begins it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from moorage.compute.drains import drains, ways
from moorage.compute.drains.drain import (
    SETTLED,
    Drain,
    DrainState,
    LeavingServer,
    LeavingState,
)
from moorage.compute.errors import ComputeError
from moorage.compute.hosts import node_capabilities
from moorage.compute.moves import migrations, moves, resizes
from moorage.compute.moves.migrations import MigrationStatus, MigrationType
from moorage.compute.moves.moves import ActionContext
from moorage.compute.servers import actions, servers
from moorage.compute.servers.server import Server
from moorage.compute.servers.server_errors import ServerNotFound
from moorage.compute.servers.states import VmState
from moorage.core import context
from moorage.core.clock import utcnow
from moorage.core.context import WorkContext

TRIES = 3
RETRY_PAUSE = timedelta(seconds=20)
"""Until a move that has failed is tried again, and longer each time: others may have made room by then."""


def advance(connection: Connection, drain_id: int, *, down_time: int) -> Drain | None:
    """The drain as it is afterwards; None if there was nothing to do, or somebody else is at it."""
    drain = drains.lock(connection, drain_id)
    if drain is None:
        return None
    _Round(connection, drain, down_time).run()
    return drains.find(connection, drain.uuid)


class _Round:
    """One look at a drain, in the transaction that holds it."""

    def __init__(self, connection: Connection, drain: Drain, down_time: int) -> None:
        self._connection = connection
        self._drain = drain
        self._down_time = down_time
        self._now = utcnow()

    def run(self) -> None:
        drain, connection = self._drain, self._connection
        if drain.host is not None:
            self._meet_arrived(drain.host)
        left = [one for one in drains.leaving(connection, drain.id) if one.state not in SETTLED]
        now_on = servers.by_id(connection, [one.server_id for one in left])
        moving = [one for one in left if one.state is LeavingState.MOVING]
        moving = [one for one in moving if not self._is_over(one, now_on[one.server_id])]
        waiting = [one for one in left if one.state is LeavingState.WAITING]
        self._begin(waiting, drain.max_parallel - len(moving))
        if all(one.state in SETTLED for one in drains.leaving(connection, drain.id)):
            drains.finish(connection, drain)

    def _meet_arrived(self, host: str) -> None:
        """What was being built there already leaves, too."""
        known = {one.server_id for one in drains.leaving(self._connection, self._drain.id)}
        arrived = [one for one in drains.servers_on(self._connection, host) if one.id not in known]
        drains.meet(self._connection, self._drain.id, arrived)

    def _source(self, one: LeavingServer) -> str | None:
        """The host that it leaves."""
        return one.source_host or self._drain.host

    def _is_over(self, one: LeavingServer, server: Server) -> bool:
        """Whether a move has come to its end, which is written down."""
        if server.deleted_at is not None:
            self._note(one, LeavingState.GONE)
        elif server.task_state is not None:
            return False
        elif server.vm_state == VmState.RESIZED and self._arrived(one, server):
            self._confirm(server)
            return False
        elif server.host != self._source(one):
            self._note(one, LeavingState.MOVED)
        else:
            self._failed(one, _last_error(self._connection, server) or "its move was undone")
        return True

    def _arrived(self, one: LeavingServer, server: Server) -> bool:
        move = migrations.active(self._connection, server.id)
        if move is None or move.source_host != self._source(one):
            return False
        return move.status == MigrationStatus.FINISHED

    def _confirm(self, server: Server) -> None:
        """Its room at its old host is free only then. A host that is down for now is asked again."""
        try:
            resizes.confirm(self._ask(servers.lock(self._connection, server.uuid)))
        except ComputeError:
            return

    def _begin(self, waiting: Sequence[LeavingServer], free: int) -> None:
        for one in waiting:
            reason = self._end_of_waiting()
            if reason is not None:
                self._note(one, LeavingState.STAYING, reason=reason)
            elif free > 0 and one.due_at <= self._now and self._begins(one):
                free -= 1

    def _end_of_waiting(self) -> str | None:
        if self._drain.state is DrainState.CANCELLING:
            return f"The {self._drain.noun} was cancelled."
        if self._drain.deadline_at is not None and self._drain.deadline_at <= self._now:
            return f"The {self._drain.noun}'s deadline has passed."
        return None

    def _begins(self, one: LeavingServer) -> bool:
        try:
            server = servers.lock(self._connection, one.server_uuid)
        except ServerNotFound:
            self._note(one, LeavingState.GONE)
            return False
        if server.host != self._source(one):
            self._note(one, LeavingState.GONE)
            return False
        if self._drain.goal is not None and server.locked_by is not None:
            self._note(one, LeavingState.STAYING, reason="It is locked.")
            return False
        if server.task_state is not None:
            return False  # busy with something else: looked at again
        able = node_capabilities.of_node(self._connection, server.node_uuid or "")
        move = ways.move_of(server.vm_state, able, self._drain.way)
        if move is None:
            self._note(one, LeavingState.STAYING, reason=ways.refusal(server, able, self._drain.way))
            return False
        try:
            with context.working(self._whose(server)):
                _MOVES[move](self._ask(server), one.target_host)
        except ComputeError as error:
            self._failed(one, str(error))
            return False
        self._note(one, LeavingState.MOVING, move=move.value)
        return True

    def _ask(self, server: Server) -> ActionContext:
        return ActionContext(self._connection, server, self._drain.origin, self._down_time)

    def _whose(self, server: Server) -> WorkContext:
        """The request for the drain is what each of its moves goes back to."""
        known = WorkContext(project_id=server.project_id, server=server.uuid, host=server.host or "")
        return known.of_request(self._drain.origin.request_ids)

    def _failed(self, one: LeavingServer, reason: str) -> None:
        tries = one.tries + 1
        if tries < TRIES:
            due_at = self._now + RETRY_PAUSE * tries
            self._note(one, LeavingState.WAITING, reason=reason, tries=tries, due_at=due_at)
        else:
            self._note(one, LeavingState.STAYING, reason=reason, tries=tries)

    def _note(
        self,
        one: LeavingServer,
        state: LeavingState,
        *,
        reason: str | None = None,
        move: str | None = None,
        tries: int | None = None,
        due_at: datetime | None = None,
    ) -> None:
        given = {"move": move, "tries": tries, "due_at": due_at}
        said = {name: value for name, value in given.items() if value is not None}
        drains.note(self._connection, self._drain.id, one.server_id, state=state.value, reason=reason, **said)


_MOVES: dict[MigrationType, Callable[[ActionContext, str | None], None]] = {
    MigrationType.LIVE: moves.live_migrate,
    MigrationType.MIGRATION: moves.migrate,
    MigrationType.EVACUATION: lambda ask, target: moves.evacuate(ask, target, stopped=False),
}


def _last_error(connection: Connection, server: Server) -> str | None:
    """Why the last thing that was done to it came to nothing."""
    for action in actions.of_server(connection, server.id, limit=1):
        for event in reversed(action.events):
            if event.get("details"):
                return str(event["details"])
    return None
