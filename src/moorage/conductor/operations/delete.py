"""Delete: the server goes from its host, then its addresses and its claim, then its row is marked.

It may come at any moment of a build or a move. That was cancelled in the transaction that enqueued this; what
a conductor had under way for it then is waited for before anything is dropped, so that nothing comes after.
In mid-move both ends may have the server, so both are cleaned, one after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection

from moorage.bus.contract import LAST, RELEASE_PORTS
from moorage.compute.hosts import vanished_nodes
from moorage.compute.moves import migrations
from moorage.compute.moves.migrations import Migration
from moorage.compute.servers import servers
from moorage.compute.servers.fault import fault
from moorage.compute.servers.states import TaskState
from moorage.conductor.engine.work import Done, Failed, Silent, Work
from moorage.conductor.operations.kind import OperationKind
from moorage.conductor.ports import server_ports
from moorage.ledger import queue
from moorage.ledger.declared import Awaited, End, Step, Wait, refused
from moorage.network import delegation
from moorage.network.contract import NetworkAccess

_LOOK_AGAIN_SECONDS = 0.5
_RETRY_SECONDS = 5.0
_MOST_TRIES = 5
_NO_CANCEL = refused("a delete gives back what the server holds: it can only be tried again")


class DeleteState(msgspec.Struct, omit_defaults=True):
    ends: list[tuple[str, str]] = []
    """Host and node of each place where the server may still be."""
    migration: str | None = None
    """The UUID of the move that it was in."""
    releaser: str = ""
    """The host whose agent is asked to release the ports, if conductors have no credentials."""

    @property
    def host(self) -> str:
        """The one that is asked next."""
        return self.ends[0][0]


class Delete(OperationKind):
    name = "delete"
    state = DeleteState
    steps = (
        Step(
            "begin",
            then=("destroy", "let_go", "release"),
            waits=Wait(Awaited.PREDECESSOR),
            cancel=_NO_CANCEL,
        ),
        Step("destroy", then=("destroyed", "let_go", "release"), cancel=_NO_CANCEL),
        Step(
            "destroyed", then=("destroy", "let_go", "release"), waits=Wait(Awaited.ANSWER), cancel=_NO_CANCEL
        ),
        Step("let_go", then=("gone", "release"), waits=Wait(Awaited.CREDENTIALS), cancel=_NO_CANCEL),
        Step("gone", then=("let_go", "release"), waits=Wait(Awaited.ANSWER), cancel=_NO_CANCEL),
        Step("release", cancel=_NO_CANCEL),
    )
    notification = "delete"
    tells = ("shutdown",)

    @classmethod
    def ends(cls, state: DeleteState, host: str | None) -> Mapping[End, str | None]:
        asked = state.releaser or (state.host if state.ends else host)
        return {End.SERVER: asked}

    def begin(self, batch: Sequence[Work[DeleteState]]) -> None:
        with self._tools.database.read() as connection:
            busy = queue.under_way(connection, [work.server.id for work in batch])
            moves = migrations.active_of(connection, [work.server.id for work in batch])
        for work in batch:
            if work.server.id in busy:
                work.wait("begin", _LOOK_AGAIN_SECONDS)
                continue
            move = moves.get(work.server.id)
            work.changes["task_state"] = TaskState.DELETING.value  # also if its time has just come
            work.state.ends = _ends(work, move)
            work.state.migration = None if move is None else move.uuid
            if work.state.ends:
                work.advance("destroy")
            else:
                self._destroyed_everywhere(work)

    def destroy(self, batch: Sequence[Work[DeleteState]]) -> None:
        """A host that is down can't be asked: it cleans up when it comes back, or now, if it hears of it."""
        up = self._tools.hosts.up()
        reachable = [work for work in batch if work.state.host in up]
        for work in batch:
            if work.state.host not in up:
                self._tools.agents.discard(work, work.state.host)
                self._next_end(work)
        self._tools.agents.ask(
            reachable,
            "destroy",
            then="destroyed",
            payload=lambda work: {LAST: True} if _is_last(work, up) else {},
            host=lambda work: work.state.host,
            node_uuid=lambda work: work.state.ends[0][1],
        )

    def _next_end(self, work: Work[DeleteState]) -> None:
        work.state.ends = work.state.ends[1:]
        if work.state.ends:
            work.advance_to_task("destroy")
        else:
            self._destroyed_everywhere(work)

    def _destroyed_everywhere(self, work: Work[DeleteState]) -> None:
        work.tell("shutdown")
        if self._tools.network.reach is NetworkAccess.AGENTS:
            work.advance_to_task("let_go")
        else:
            work.advance("release")

    def destroyed(self, batch: Sequence[Work[DeleteState]]) -> None:
        for work, answer in self._tools.agents.answers(batch, "destroy"):
            match answer:
                case Done():
                    self._next_end(work)
                case Failed(error) if work.operation.tries < _MOST_TRIES:
                    work.try_again("destroy", _RETRY_SECONDS, error)
                case Failed(error):
                    self.give_up(work, error)
                case Silent():
                    self.give_up(work, "the host did not answer")

    def let_go(self, batch: Sequence[Work[DeleteState]]) -> None:
        """We have no credentials: have an agent release the ports, that of the server's host if it lives."""
        able = sorted(self._tools.port_duties.networked())
        for work in batch:
            if able:
                work.state.releaser = work.server.host if work.server.host in able else able[0]
            elif not server_ports.holding(work).ports:  # and who could have made any?
                work.advance("release")
            elif work.operation.tries < _MOST_TRIES:
                work.try_again("let_go", _RETRY_SECONDS)
            else:
                self.give_up(work, "neither the conductors nor any agent have credentials for Neutron")
        self._tools.agents.ask(
            batch if able else [],
            RELEASE_PORTS,
            then="gone",
            payload=lambda work: {delegation.HOLDING: msgspec.to_builtins(server_ports.holding(work))},
            host=lambda work: work.state.releaser,
            node_uuid=lambda _work: "",
        )

    def gone(self, batch: Sequence[Work[DeleteState]]) -> None:
        """The ports are released, if the agent says so."""
        for work in batch:
            match work.answer():
                case Done():
                    work.advance("release")
                case Silent():
                    self._let_go_again(work, 0.0, "no agent released the ports")
                case Failed(error):
                    self._let_go_again(work, _RETRY_SECONDS, error)

    def _let_go_again(self, work: Work[DeleteState], pause: float, error: str) -> None:
        if work.operation.tries < _MOST_TRIES:
            work.operation.attempt += 1
            work.try_again("let_go", pause, error)
        else:
            self.give_up(work, error)

    def give_up(self, work: Work[DeleteState], error: str) -> None:
        work.changes = {"vm_state": "error", "task_state": None, "fault": fault(error)}
        work.fail(error)

    def release(self, batch: Sequence[Work[DeleteState]]) -> None:
        self._tools.network.release([server_ports.holding(work) for work in batch])
        consumers = [work.operation.server_uuid for work in batch]
        moves = [work.state.migration for work in batch if work.state.migration is not None]
        self._tools.placement.release(consumers + moves)
        for work in batch:
            work.write_together(_mark_deleted, work.server.id)
            work.finish()


def _ends(work: Work[DeleteState], move: Migration | None) -> list[tuple[str, str]]:
    """Host and node of each place where the server may be."""
    found = [(work.server.host, work.server.node_uuid)]
    if move is not None:
        found += [(move.source_host, move.source_node_uuid), (move.dest_host, move.dest_node_uuid)]
    return [(host, node_uuid or "") for host, node_uuid in dict.fromkeys(found) if host]


def _is_last(work: Work[DeleteState], up: Collection[str]) -> bool:
    """Whether the host that is asked next is the last one that can be."""
    return not any(host in up for host, _ in work.state.ends[1:])


def _mark_deleted(connection: Connection, server_ids: Sequence[int]) -> None:
    servers.mark_deleted(connection, server_ids)
    vanished_nodes.forget_after(connection, server_ids)
