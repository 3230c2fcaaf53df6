"""Live migration: a server moves while it runs.

    … agree → reserve (ports) → expect (the destination prepares) → migrate (the source sends it there) → bind
    → take_over → leave (the source forgets it) → done

Once a driver has sent a server for good (`ARRIVED`), there is no way back: whatever fails from then on, the
server is at its destination. If the source is lost in the middle of it, the destination is asked whether the
server has come (look); nothing is destroyed there before that is known, since it may be the only one.

An administrator may wish to abort it, until the source has sent it, or to hurry. The wish is in the
migration's row; whoever works on the operation sees it at the next step, or tells the source at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.bus.contract import ABORT, HURRY
from moorage.bus.notifications import Phase
from moorage.compute.moves import migrations
from moorage.compute.moves.migrations import LiveMigrationWish, MigrationStatus
from moorage.compute.moves.move import MoveEnd
from moorage.compute.servers import server_spec
from moorage.conductor.engine.work import Done, Failed, Silent, Work
from moorage.conductor.operations.moves.cold_move import arrival
from moorage.conductor.operations.moves.moving import Moving, destination, source
from moorage.conductor.operations.moves.shared_steps import AT_DESTINATION, AT_SOURCE, CLEAN, GOING_BACK
from moorage.conductor.placing.placed import MoveState
from moorage.conductor.ports import server_ports
from moorage.drivers.contract import NO_STATE
from moorage.drivers.parts import ARRIVED
from moorage.ledger.declared import Awaited, End, Step, Wait, back_by, refused
from moorage.network.contract import NetworkError

_LOOK_SECONDS = 5.0
"""So often a migration that is under way is looked at for wishes, at the latest."""
_SIGNALS = {LiveMigrationWish.ABORT: ABORT, LiveMigrationWish.HURRY: HURRY}
_ABORTED = "the live migration was aborted"
_BEING_SENT = refused(
    "the server may run at its destination by now: `openstack server migration abort` asks its source to stop"
)
_SENT = refused("the server is at its destination already")
_SENDING = Wait(Awaited.SERVER_SENT, End.SOURCE, patience=3600.0)
_SOURCE_BACK = Wait(Awaited.HOST, End.SOURCE)
_MOST_TRIES_THERE = 5
"""So often the destination, or the network there, may fail a server that has arrived."""


class LiveMigrateState(MoveState, kw_only=True, omit_defaults=True):
    ticket: dict[str, Any] = {}
    """What the destination told: the source needs it to send the server there."""
    looks: int = 0
    """How often it was looked whether the source is done."""
    hurried: bool = False
    """It was told that it shall end soon."""


class LiveMigrate(Moving[LiveMigrateState]):
    name = "live_migrate"
    state = LiveMigrateState
    steps = (
        Step("begin", then=("schedule",), cancel=back_by("restore")),
        Step("schedule", then=("agree", "restore"), cancel=back_by("retreat")),
        Step("agree", then=("reserve", "retreat", "clean"), cancel=back_by("retreat")),
        Step("reserve", then=("expect", "clean"), cancel=CLEAN),
        Step("expect", then=("expected", "clean"), cancel=CLEAN),
        Step("expected", then=("migrate", "expect", "clean"), waits=AT_DESTINATION, cancel=CLEAN),
        Step("migrate", then=("migrated", "clean", "look"), cancel=_BEING_SENT),
        Step("migrated", then=("bind", "migrate", "look", "clean"), waits=_SENDING, cancel=_BEING_SENT),
        Step("look", then=("looked", "migrate"), waits=_SOURCE_BACK, cancel=_BEING_SENT),
        Step("looked", then=("bind", "look", "clean"), waits=AT_DESTINATION, cancel=_BEING_SENT),
        Step("bind", then=("take_over", "leave", "clean"), cancel=_SENT),
        Step("take_over", then=("taken_over", "leave", "clean"), cancel=_SENT),
        Step("taken_over", then=("leave", "take_over", "clean"), waits=AT_DESTINATION, cancel=_SENT),
        Step("leave", then=("left", "release"), cancel=_SENT),
        Step("left", then=("leave", "release"), waits=AT_SOURCE, cancel=_SENT),
        Step("release", cancel=_SENT),
        *GOING_BACK,
    )
    tells = (
        *("live_migration_pre", "live_migration_post", "live_migration_post_dest"),
        *("live_migration_rollback_dest", "live_migration_rollback"),
        *("live_migration_abort", "live_migration_force_complete"),
    )
    arrive_event = "compute_live_migration"
    placed_status = MigrationStatus.PREPARING

    def depart(self, work: Work[LiveMigrateState]) -> None:
        if self._aborted(work):
            self._abort(work)
        else:
            work.advance("reserve")

    def stopped_at_source(self, work: Work[LiveMigrateState]) -> bool:
        return work.state.parcel is not None

    # ------------------------------------------------------------ the destination prepares

    def reserve(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        """A second binding of each port, so that traffic can follow the server at once."""
        bindings = [server_ports.binding_at(work, work.state.place) for work in batch]
        for work, ports in zip(batch, self._tools.network.expect(bindings), strict=True):
            if isinstance(ports, NetworkError):
                self.failed(work, "reserve", str(ports), destination(work), elsewhere=ports.retry_elsewhere)
                continue
            server_ports.keep(work, ports)
            work.tell("live_migration_pre", Phase.START)
            work.advance_to_task("expect")

    def expect(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        self.order(
            batch,
            "expect",
            then="expected",
            end=destination,
            elsewhere=True,
            payload=lambda work: {
                "spec": server_spec.of(
                    work.server,
                    node_uuid=destination(work).node_uuid,
                    allocations=work.state.place.allocations,
                    network=server_ports.arriving(work),
                )
            },
        )

    def expected(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        for work, facts in self.done(batch, "expect", end=destination, elsewhere=True):
            if self._aborted(work):
                self._abort(work)
            else:
                work.state.ticket = facts["parcel"]
                work.tell("live_migration_pre", Phase.END)
                self.record(work, MigrationStatus.RUNNING)
                work.advance_to_task("migrate")

    # ------------------------------------------------------------ the source sends it

    def migrate(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        self.ask(
            batch,
            "live_migrate",
            then="migrated",
            end=source,
            down=self._lose_source,
            payload=lambda work: {"destination": work.state.ticket},
        )
        for work in batch:
            if work.operation.step == "migrated":
                self._tell_wish(work)
                work.wait("migrated", _LOOK_SECONDS)

    def migrated(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        for work in batch:
            match work.answer():
                case Done(facts):
                    work.state.parcel = facts["parcel"]
                    work.tell("live_migration_post", Phase.START)
                    self.record(work, MigrationStatus.POST_MIGRATING)
                    self.note(work, "compute_live_migration", host=source(work).host)
                    work.advance("bind")
                case Failed(error):
                    work.state.aborted = self._aborted(work)
                    self._stay(work, error)
                case Silent():
                    self._not_yet(work)

    def _not_yet(self, work: Work[LiveMigrateState]) -> None:
        """It may take its time; once in a while the source is asked again, in case it forgot."""
        if source(work).host not in self._tools.hosts.up():
            self._lose_source(work)
            return
        self._tell_wish(work)
        work.state.looks += 1
        work.wait("migrate" if work.state.looks % 6 == 0 else "migrated", _LOOK_SECONDS)

    def _stay(self, work: Work[LiveMigrateState], error: str) -> None:
        self.failed(work, "live_migrate", error, source(work), elsewhere=False)

    # ------------------------------------------------------------ the source is lost in the middle of it

    def _lose_source(self, work: Work[LiveMigrateState]) -> None:
        if self._aborted(work):
            self._abort(work)
        else:
            work.advance_to_task("look")

    def look(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        """Ask the destination; or the source again, if it is back: it knows best what it has done."""
        up = self._tools.hosts.up()
        for work in batch:
            if source(work).host in up:
                work.advance_to_task("migrate")
        lost = [work for work in batch if source(work).host not in up]
        self.ask(lost, "look", then="looked", end=destination, down=_look_later)

    def looked(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        for work, answer in self._tools.agents.answers(batch, "look"):
            match answer:
                case Done(facts) if facts["power_state"] != NO_STATE:
                    work.state.parcel = {ARRIVED: True}
                    work.tell("live_migration_post", Phase.START)
                    self.record(work, MigrationStatus.POST_MIGRATING)
                    work.advance("bind")
                case Failed():
                    self._stay(work, "the host went down")
                case Done() | Silent():
                    _look_later(work)

    # ------------------------------------------------------------ the destination has it

    def failed(
        self, work: Work[LiveMigrateState], step: str, error: str, end: MoveEnd, *, elsewhere: bool
    ) -> None:
        """A server that has arrived stays at its destination, and is the user's to look at."""
        if not _has_arrived(work):
            super().failed(work, step, error, end, elsewhere=elsewhere)
        elif work.operation.tries < _MOST_TRIES_THERE:
            work.operation.attempt += 1
            work.try_again(step, _LOOK_SECONDS)
        else:
            self.note(work, self.arrive_event, error, host=end.host)
            work.state.last_error = error
            work.changes |= destination(work).as_columns()
            work.advance_to_task("leave")

    def arrive(self, work: Work[LiveMigrateState]) -> None:
        work.advance_to_task("take_over")

    def take_over(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        self.order(batch, "take_over", then="taken_over", end=destination, elsewhere=False, payload=arrival)

    def taken_over(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        for work, facts in self.done(batch, "take_over", end=destination, elsewhere=False):
            work.changes |= {**destination(work).as_columns(), "power_state": facts["power_state"]}
            work.tell("live_migration_post_dest")
            work.advance_to_task("leave")

    # ------------------------------------------------------------ the source has forgotten it

    def release(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        for work in batch:
            self._tools.both_ends.release_source(work.state.move.migration_uuid)
            error = work.state.last_error
            if error is not None:
                self.record(work, MigrationStatus.ERROR)
                self.give_up(work, error)
                continue
            work.changes |= {"vm_state": work.state.move.old_state, "task_state": None}
            self.record(work, MigrationStatus.COMPLETED)
            self.note(work, "compute_post_live_migration_at_destination", host=work.server.host)
            work.tell("live_migration_post", Phase.END)
            work.finish()

    def cleaned(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        super().cleaned(batch)
        for work in batch:
            if work.operation.step == "retreat":
                work.tell("live_migration_rollback_dest")

    def over(self, work: Work[LiveMigrateState]) -> None:
        if work.state.aborted:
            work.tell("live_migration_abort")
        work.tell("live_migration_rollback")
        super().over(work)

    # ------------------------------------------------------------ wishes

    def _wish(self, work: Work[LiveMigrateState]) -> str | None:
        with self._tools.database.read() as connection:
            return migrations.wish_of(connection, work.state.move.migration_id)

    def _aborted(self, work: Work[LiveMigrateState]) -> bool:
        return self._wish(work) == LiveMigrationWish.ABORT

    def _abort(self, work: Work[LiveMigrateState]) -> None:
        work.state.aborted = True
        self._stay(work, _ABORTED)

    def _tell_wish(self, work: Work[LiveMigrateState]) -> None:
        wish = self._wish(work)
        if wish == LiveMigrationWish.HURRY and not work.state.hurried:
            work.state.hurried = True
            work.tell("live_migration_force_complete")
        if wish is not None:
            self._tools.agents.signal(work, source(work).host, _SIGNALS[LiveMigrationWish(wish)])


def _has_arrived(work: Work[LiveMigrateState]) -> bool:
    return bool((work.state.parcel or {}).get(ARRIVED))


def _look_later(work: Work[LiveMigrateState]) -> None:
    """Each look is a task of its own: an agent that is asked the same again says what it said."""
    work.operation.attempt += 1
    work.wait("look", _LOOK_SECONDS)
