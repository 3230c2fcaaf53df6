"""What all moves of servers have in common.

    schedule (a host; both ends' allocations) → agree (server groups) → … → the server is there
                ↑                                                      ↓ if the destination fails it
             retreat (as before: allocations, ports, group) ← cleaned ← clean (nothing is left there)
                ↓ if no other host may be tried
             restore (the server runs again where it was) → over

Until the destination has the server, the server's row says that it is at its source. Who resumes after a
crash finds in Placement whether the last claim came true, and gives it back before it decides again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from sqlalchemy.engine import Connection

from moorage.bus.contract import UNDO_RESIZE
from moorage.compute.moves import migrations
from moorage.compute.moves.migrations import MigrationStatus
from moorage.compute.moves.move import Move, MoveEnd
from moorage.compute.ports import shown_addresses
from moorage.compute.quotas import usage
from moorage.compute.servers import actions
from moorage.compute.servers.actions import Event
from moorage.compute.servers.fault import fault
from moorage.compute.servers.states import VmState
from moorage.compute.servers.traces import AttemptRecord
from moorage.conductor.agents import lasting_hardware
from moorage.conductor.engine.work import Done, Failed, Silent, Work
from moorage.conductor.operations.kind import OperationKind
from moorage.conductor.placing import groups
from moorage.conductor.placing.placed import MoveState
from moorage.conductor.placing.placing import DisputedClaim
from moorage.conductor.ports import server_ports
from moorage.deciding.decider import NoHost
from moorage.ledger.declared import End
from moorage.network.contract import NetworkAccess, NetworkError

M = TypeVar("M", bound=MoveState)
_DISPUTE_SECONDS = 0.5
_MOST_CLEANINGS = 5
_CLEAN_AGAIN_SECONDS = 2.0


class Moving(OperationKind, Generic[M]):
    """The steps around a move; each kind of move has its own in between, and declares which it has."""

    state: ClassVar[type[MoveState]] = MoveState

    arrive_event = "compute_finish_move"
    """What instance actions call the work of the destination."""
    placed_status = MigrationStatus.PRE_MIGRATING
    """What the migration is once it has a destination."""

    @classmethod
    def ends(cls, state: MoveState, host: str | None) -> Mapping[End, str | None]:
        destination = None if state.placed is None else state.placed.host
        return {End.SERVER: host, End.SOURCE: state.move.source.host, End.DESTINATION: destination}

    # ------------------------------------------------------------ what each kind says

    def begin(self, batch: Sequence[Work[M]]) -> None:
        for work in batch:
            work.advance("schedule")

    def depart(self, work: Work[M]) -> None:
        """A destination is found, and agreed to: go on."""
        raise NotImplementedError

    def arrive(self, work: Work[M]) -> None:
        """The ports are bound to the destination: go on."""
        raise NotImplementedError

    def stopped_at_source(self, work: Work[M]) -> bool:
        """Whether the server may have been shut down there on behalf of the move."""
        return False

    # ------------------------------------------------------------ finding a place

    def schedule(self, batch: Sequence[Work[M]]) -> None:
        """What a conductor claimed that came to no checkpoint is given back before it is decided again."""
        batch = [
            work
            for work in self._movable(batch)
            if self._tools.both_ends.give_back(work, work.state.move.migration_uuid)
        ]
        for work, decision in zip(batch, self._tools.placer.place_moves(batch), strict=True):
            if isinstance(decision, DisputedClaim):
                work.wait("schedule", _DISPUTE_SECONDS)
                continue
            if isinstance(decision, NoHost):
                work.state.last_error = decision.sentence
                self.note(work, "conductor_schedule_move", decision.sentence)
                work.advance_to_task("restore")
                continue
            work.state.placed = decision
            work.state.decided_at = work.operation.attempt
            work.state.tried_nodes.append(decision.node_uuid)
            self.record(work, self.placed_status, destination(work))
            work.advance("agree")

    def _movable(self, batch: Sequence[Work[M]]) -> list[Work[M]]:
        """Ports follow a server only if we can bind them: found out before anything is shut down."""
        if self._tools.network.reach is not NetworkAccess.AGENTS:
            return list(batch)
        stuck = [work for work in batch if server_ports.of(work)]
        for work in stuck:
            work.state.last_error = (
                "servers with ports can't move: the conductors have no credentials for Neutron"
            )
            self.note(work, "conductor_schedule_move", work.state.last_error)
            work.advance_to_task("restore")
        return [work for work in batch if work not in stuck]

    def agree(self, batch: Sequence[Work[M]]) -> None:
        refused = groups.refused(self._tools.database, batch)
        for work in batch:
            if work.operation.id in refused:
                self._keep_attempt(work, "agree", "refused", "other members of its group were quicker")
                work.advance("retreat")
            else:
                self.depart(work)

    def bind(self, batch: Sequence[Work[M]]) -> None:
        """Its ports follow the server to its destination, which is in the same cell."""
        bindings = [server_ports.binding_at(work, work.state.place) for work in batch]
        for work, ports in zip(batch, self._tools.network.bind(bindings), strict=True):
            if isinstance(ports, NetworkError):
                work.state.failed_hosts.append(destination(work).host)
                self.failed(work, "bind", str(ports), destination(work), elsewhere=ports.retry_elsewhere)
                continue
            server_ports.keep(work, ports)
            work.changes["addresses"] = shown_addresses.addresses(ports)
            self.arrive(work)

    # ------------------------------------------------------------ asking the hosts

    def ask(
        self,
        batch: Sequence[Work[M]],
        kind: str,
        *,
        then: str,
        end: Callable[[Work[M]], MoveEnd],
        down: Callable[[Work[M]], None],
        payload: Callable[[Work[M]], dict[str, Any]] = lambda _work: {},
    ) -> None:
        """Give the host at one end a task; `down` says what to do if that host is not alive."""
        up = self._tools.hosts.up()
        for work in batch:
            if end(work).host not in up:
                down(work)
        reachable = [work for work in batch if end(work).host in up]
        for work in reachable:
            work.state.tasks[end(work).host] = work.operation.attempt
        self._tools.agents.ask(
            reachable,
            kind,
            then=then,
            payload=payload,
            host=lambda work: end(work).host,
            node_uuid=lambda work: end(work).node_uuid,
        )

    def order(
        self,
        batch: Sequence[Work[M]],
        step: str,
        *,
        then: str,
        end: Callable[[Work[M]], MoveEnd],
        elsewhere: bool,
        payload: Callable[[Work[M]], dict[str, Any]] = lambda _work: {},
    ) -> None:
        """As `ask`, for what the move can't do without; `elsewhere` if another destination may do it."""

        def down(work: Work[M]) -> None:
            self.failed(work, step, "the host went down", end(work), elsewhere=elsewhere)

        self.ask(batch, step, then=then, end=end, down=down, payload=payload)

    def done(
        self,
        batch: Sequence[Work[M]],
        step: str,
        *,
        end: Callable[[Work[M]], MoveEnd],
        elsewhere: bool,
    ) -> Iterator[tuple[Work[M], dict[str, Any]]]:
        """Those whose hosts did what the step `step` ordered, with what they tell; the others go back."""
        for work, answer in self._tools.agents.answers(batch, step, patient=self._alive(end)):
            match answer:
                case Done(facts):
                    lasting_hardware.keep(work, facts)
                    yield work, facts
                case Failed(error, retry_elsewhere):
                    self.failed(work, step, error, end(work), elsewhere=elsewhere and retry_elsewhere)
                case Silent():
                    self.failed(work, step, "the host did not answer", end(work), elsewhere=elsewhere)

    def abandon(self, end: Callable[[Work[M]], MoveEnd], then: str, work: Work[M]) -> None:
        """A host that is down cleans up when it comes back, or now, if it hears of it after all.

        One that the server stays on keeps what it has of it.
        """
        if not stays(work):
            self._tools.agents.discard(work, end(work).host)
        work.advance(then)

    def _alive(self, end: Callable[[Work[M]], MoveEnd]) -> Callable[[Work[M]], bool]:
        """Whether the host at that end lives: only then it is asked again."""
        return lambda work: end(work).host in self._tools.hosts.up()

    # ------------------------------------------------------------ going back

    def failed(self, work: Work[M], step: str, error: str, end: MoveEnd, *, elsewhere: bool) -> None:
        """One end failed the server: clean up at the destination, and take the next one if that may help."""
        self.note(work, self.arrive_event, error, host=end.host)
        self._keep_attempt(work, step, "failed", error)
        if not elsewhere or work.state.failures() >= self._tools.max_attempts:
            work.state.last_error = error
        work.advance_to_task("clean")

    def clean(self, batch: Sequence[Work[M]]) -> None:
        """Nothing is left there; a server that stays on its node becomes what it was."""
        forsake = partial(self.abandon, destination, "retreat")
        away, staying = _parted(batch)
        self.ask(away, "destroy", then="cleaned", end=destination, down=forsake)
        self.ask(staying, UNDO_RESIZE, then="cleaned", end=destination, down=self.await_host)

    def await_host(self, work: Work[M]) -> None:
        """Only the host can make the server what it was: until it is back, nobody knows what it is."""
        work.wait("clean", _CLEAN_AGAIN_SECONDS)

    def cleaned(self, batch: Sequence[Work[M]]) -> None:
        alive = self._alive(destination)
        for work, answer in self._tools.agents.answers(batch, "clean", patient=alive):
            match answer:
                case Done():
                    work.advance("retreat")
                case Failed(error) if work.operation.tries < _MOST_CLEANINGS:
                    self._ask_once_more(work, "clean", error)
                case Failed(error):
                    self.not_cleaned(work, error)
                case Silent() if alive(work):
                    self.not_cleaned(work, "the host did not answer")
                case Silent() if stays(work):
                    self.await_host(work)
                case Silent():
                    self.abandon(destination, "retreat", work)

    def _ask_once_more(self, work: Work[M], step: str, error: str) -> None:
        """A host destroys again what it failed to; anything else needs another attempt."""
        work.operation.attempt += int(stays(work))
        work.try_again(step, _CLEAN_AGAIN_SECONDS, error)

    def not_cleaned(self, work: Work[M], error: str) -> None:
        """It did not run there, and what is left of it is a stray from now on."""
        if stays(work):
            self.give_up(work, f"its host could not make it what it was: {error}")
        else:
            self.abandon(destination, "retreat", work)

    def retreat(self, batch: Sequence[Work[M]]) -> None:
        """Everything is the source's again."""
        for work in batch:
            move = work.state.move
            if not self._tools.both_ends.give_back(work, move.migration_uuid):
                continue
            if work.state.placed is not None:
                self.bind_to(work, move.source.host, work.state.place.cell)
            stay = partial(stay_in_group, work.server.id, move.source.node_uuid)
            work.writes.append(stay)
            if work.state.last_error is not None:
                work.advance_to_task("restore")
            else:
                work.operation.attempt += 1
                work.advance("schedule")

    def bind_to(self, work: Work[M], host: str, cell: str) -> None:
        """Have the ports follow the server back."""
        (ports,) = self._tools.network.bind([server_ports.binding(work, host, cell)])
        if isinstance(ports, NetworkError):
            raise ports
        server_ports.keep(work, ports)
        work.changes["addresses"] = shown_addresses.addresses(ports)

    def restore(self, batch: Sequence[Work[M]]) -> None:
        stopped = []
        for work in batch:
            if self._has_to_start(work):
                stopped.append(work)
            else:
                self.over(work)
        self.ask(stopped, "start", then="restored", end=source, down=self.over)

    def _has_to_start(self, work: Work[M]) -> bool:
        return self.stopped_at_source(work) and work.state.move.old_state in (VmState.ACTIVE, VmState.PAUSED)

    def restored(self, batch: Sequence[Work[M]]) -> None:
        for work, answer in self._tools.agents.answers(batch, "restore", patient=self._alive(source)):
            match answer:
                case Done(facts):
                    work.changes["power_state"] = facts["power_state"]
                    self.over(work)
                case Failed(error) if work.operation.tries < _MOST_CLEANINGS:
                    work.operation.attempt += 1
                    work.try_again("restore", _CLEAN_AGAIN_SECONDS, error)
                case Failed(error):
                    self.give_up(work, f"it did not start again at its host: {error}")
                case Silent():
                    self.over(work)

    def over(self, work: Work[M]) -> None:
        """The move has failed, the server is as it was; its action and its trace say why."""
        move = work.state.move
        error = work.state.last_error or ""
        status = MigrationStatus.CANCELLED if work.state.aborted else MigrationStatus.ERROR
        self.record(work, status)
        work.writes.append(partial(return_quota, work.server.project_id, move))
        work.changes |= {"vm_state": move.old_state, "task_state": None, "fault": fault(error)}
        work.fail(error)

    def cancel(self, work: Work[M], reason: str) -> None:
        """It goes back, as if no other destination could be tried."""
        self.note(work, self.arrive_event, reason)
        work.state.last_error = reason
        work.state.aborted = True
        then = {step.name: step for step in self.steps}[work.operation.step].cancel.then
        if then is None:
            self.give_up(work, reason)
        elif then == "retreat":
            work.advance(then)
        else:
            work.advance_to_task(then)

    def give_up(self, work: Work[M], error: str) -> None:
        """The migration stays active: what it holds at either end is left for a delete, or a reset."""
        work.changes = {"vm_state": VmState.ERROR.value, "task_state": None, "fault": fault(error)}
        work.fail(error)

    # ------------------------------------------------------------ leaving the source for good

    def leave(self, batch: Sequence[Work[M]]) -> None:
        forsake = partial(self.abandon, source, "release")
        away, staying = _parted(batch)
        self.ask(away, "destroy", then="left", end=source, down=forsake)
        self.ask(staying, "keep_resize", then="left", end=source, down=forsake)

    def left(self, batch: Sequence[Work[M]]) -> None:
        for work, answer in self._tools.agents.answers(batch, "leave", patient=self._alive(source)):
            match answer:
                case Done():
                    work.advance("release")
                case Failed(error) if work.operation.tries < _MOST_CLEANINGS:
                    self._ask_once_more(work, "leave", error)
                case Failed(error):
                    self.not_left(work, error)
                case Silent():
                    self.abandon(source, "release", work)

    def not_left(self, work: Work[M], error: str) -> None:
        """It runs at its destination; what the source still has is a stray from now on."""
        self.abandon(source, "release", work)

    # ------------------------------------------------------------ what is written down

    def record(self, work: Work[M], status: MigrationStatus, end: MoveEnd | None = None) -> None:
        """Say in the migration how far it is, and where it goes."""
        columns: dict[str, Any] = {}
        if end is not None:
            columns = {
                "dest_host": end.host,
                "dest_node": end.node,
                "dest_node_uuid": end.node_uuid,
                "dest_address": self._tools.hosts.address(end.node_uuid),
            }
        migration_id = work.state.move.migration_id
        work.writes.append(lambda connection: migrations.change(connection, migration_id, status, **columns))

    def note(self, work: Work[M], event: str, error: str | None = None, host: str | None = None) -> None:
        work.write_together(actions.add_events, Event(work.operation.action_id, event, host, error))

    def _keep_attempt(self, work: Work[M], step: str, outcome: str, detail: str) -> None:
        decided_at = work.state.decided_at
        attempt = work.operation.attempt if decided_at is None else decided_at
        work.state.attempts.append(AttemptRecord(attempt, step, outcome, detail))


def source(work: Work[MoveState]) -> MoveEnd:
    return work.state.move.source


def destination(work: Work[MoveState]) -> MoveEnd:
    """Where the operation has found a place."""
    return work.state.place.end


def stays(work: Work[MoveState]) -> bool:
    """Whether it gets another flavor on the node that it is on; once a place was found for it."""
    here, place = work.server.node_uuid, work.state.placed
    return here == work.state.move.source.node_uuid and (place is None or place.node_uuid == here)


def _parted(batch: Sequence[Work[M]]) -> tuple[list[Work[M]], list[Work[M]]]:
    """Those that go to another node, and those that stay on theirs."""
    return [work for work in batch if not stays(work)], [work for work in batch if stays(work)]


def stay_in_group(server_id: int, node_uuid: str, connection: Connection) -> None:
    groups.stay(connection, server_id, node_uuid)


def return_quota(project_id: str, move: Move, connection: Connection) -> None:
    usage.resized(connection, project_id, move.old_flavor, move.old_flavor, move.reserved)
    migrations.change(connection, move.migration_id, reserved={})
