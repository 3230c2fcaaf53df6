"""Unwind: an administrator has reset a server in mid-move, so what the other end has of it must go.

    begin → clean (the other end destroys it) → cleaned → retreat (allocations, ports) → restore → restored

The server stays at the end where its row says that it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from moorage.compute.moves.migrations import MigrationStatus
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.moves.moving import Moving, destination, return_quota, stay_in_group, stays
from moorage.conductor.operations.moves.shared_steps import going_back
from moorage.conductor.placing.placed import MoveState
from moorage.ledger import queue
from moorage.ledger.declared import Awaited, Step, Wait, refused

_LOOK_AGAIN_SECONDS = 0.5
_NO_CANCEL = refused("it ends a move that was cut short")


class Unwind(Moving[MoveState]):
    name = "unwind"
    steps = (
        Step("begin", then=("clean", "retreat"), waits=Wait(Awaited.PREDECESSOR), cancel=_NO_CANCEL),
        *going_back(cancel=_NO_CANCEL),
    )

    def begin(self, batch: Sequence[Work[MoveState]]) -> None:
        """Whoever was at the move may still have something under way."""
        with self._tools.database.read() as connection:
            busy = queue.under_way(connection, [work.server.id for work in batch])
        for work in batch:
            if work.server.id in busy:
                work.wait("begin", _LOOK_AGAIN_SECONDS)
            else:
                work.advance("clean" if work.state.placed else "retreat")

    def clean(self, batch: Sequence[Work[MoveState]]) -> None:
        """One that has its new flavor, on the node where it was, keeps it."""
        done = [work for work in batch if _is_resized(work)]
        forsake = partial(self.abandon, destination, "retreat")
        self.ask(done, "keep_resize", then="cleaned", end=destination, down=forsake)
        super().clean([work for work in batch if work not in done])

    def await_host(self, work: Work[MoveState]) -> None:
        """Whoever resets a server does not wait for its host: it may have to be evacuated from there."""
        self.abandon(destination, "retreat", work)

    def retreat(self, batch: Sequence[Work[MoveState]]) -> None:
        states = self._tools.hosts.states({work.server.on_node for work in batch})
        for work in filter(Work.holds, batch):
            move = work.state.move
            if work.server.host == move.source.host and not _is_resized(work):
                if not self._tools.both_ends.give_back(work, move.migration_uuid):
                    continue
            else:
                self._tools.both_ends.release_source(move.migration_uuid)
            state = states.get(work.server.on_node)
            if state is not None:
                self.bind_to(work, state.host, state.cell)
            work.writes.append(partial(stay_in_group, work.server.id, work.server.on_node))
            work.advance_to_task("restore")

    def stopped_at_source(self, work: Work[MoveState]) -> bool:
        return work.server.host == work.state.move.source.host and not _is_resized(work)

    def over(self, work: Work[MoveState]) -> None:
        move = work.state.move
        self.record(work, MigrationStatus.ERROR)
        work.writes.append(partial(return_quota, work.server.project_id, move))
        work.changes |= {"task_state": None}
        work.finish()


def _is_resized(work: Work[MoveState]) -> bool:
    """Whether it has its new flavor, on the node where it was before."""
    move = work.state.move
    return stays(work) and work.server.flavor["id"] == move.flavor["id"] != move.old_flavor["id"]
