"""Live migration: a server moves while it runs.

    … agree → reserve (ports) → expect (the destination prepares) → migrate (the source sends it there) → bind
    → take_over → leave (the source forgets it) → done

An administrator may wish to abort it, until the source has sent it, or to hurry. The wish is in the
migration's row; whoever works on the operation sees it at the next step, or tells the source at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.bus.contract import ABORT, HURRY
from moorage.compute.moves import migrations
from moorage.compute.moves.migrations import LiveMigrationWish, MigrationStatus
from moorage.compute.servers.states import VmState
from moorage.conductor.agents import server_spec
from moorage.conductor.engine.kind import Step
from moorage.conductor.engine.work import Done, Failed, Silent, Work
from moorage.conductor.operations.cold_move import arrival
from moorage.conductor.operations.moving import Moving, destination, source
from moorage.conductor.placing.placed import MoveState
from moorage.conductor.ports import server_ports
from moorage.network.contract import NetworkError

_LOOK_SECONDS = 5.0
"""So often a migration that is under way is looked at for wishes, at the latest."""
_SIGNALS = {LiveMigrationWish.ABORT: ABORT, LiveMigrationWish.HURRY: HURRY}
_ABORTED = "the live migration was aborted"


class LiveMigrateState(MoveState, kw_only=True, omit_defaults=True):
    ticket: dict[str, Any] = {}
    """What the destination told: the source needs it to send the server there."""
    looks: int = 0
    """How often it was looked whether the source is done."""


class LiveMigrate(Moving[LiveMigrateState]):
    name = "live_migrate"
    state = LiveMigrateState
    steps = (
        Step("begin", then=("schedule",)),
        Step("schedule", then=("agree", "restore")),
        Step("agree", then=("reserve", "retreat", "clean")),
        Step("reserve", then=("expect", "clean")),
        Step("expect", then=("expected", "clean")),
        Step("expected", then=("migrate", "expect", "clean")),
        Step("migrate", then=("migrated", "clean")),
        Step("migrated", then=("bind", "migrate", "clean")),
        Step("bind", then=("take_over", "clean")),
        Step("take_over", then=("taken_over", "clean")),
        Step("taken_over", then=("leave", "take_over", "clean")),
        Step("leave", then=("left", "release")),
        Step("left", then=("leave", "release")),
        Step("release"),
        Step("clean", then=("cleaned", "retreat")),
        Step("cleaned", then=("clean", "retreat")),
        Step("retreat", then=("schedule", "restore")),
        Step("restore", then=("restored",)),
        Step("restored", then=("restore",)),
    )
    notification = "live_migration"
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
            work.advance_to_task("expect")

    def expect(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        self.order(
            batch,
            "expect",
            then="expected",
            end=destination,
            elsewhere=True,
            payload=lambda work: {"spec": server_spec.of(work.server, node_uuid=destination(work).node_uuid)},
        )

    def expected(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        for work, facts in self.done(batch, "expect", end=destination, elsewhere=True):
            if self._aborted(work):
                self._abort(work)
            else:
                work.state.ticket = facts["parcel"]
                self.record(work, MigrationStatus.RUNNING)
                work.advance_to_task("migrate")

    # ------------------------------------------------------------ the source sends it

    def migrate(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        self.ask(
            batch,
            "live_migrate",
            then="migrated",
            end=source,
            down=lambda work: self._stay(work, "the host went down"),
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
            self._stay(work, "the host went down")
            return
        self._tell_wish(work)
        work.state.looks += 1
        work.wait("migrate" if work.state.looks % 6 == 0 else "migrated", _LOOK_SECONDS)

    def _stay(self, work: Work[LiveMigrateState], error: str) -> None:
        self.failed(work, "live_migrate", error, source(work), elsewhere=False)

    # ------------------------------------------------------------ the destination has it

    def arrive(self, work: Work[LiveMigrateState]) -> None:
        work.advance_to_task("take_over")

    def take_over(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        self.order(batch, "take_over", then="taken_over", end=destination, elsewhere=False, payload=arrival)

    def taken_over(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        for work, facts in self.done(batch, "take_over", end=destination, elsewhere=False):
            work.changes |= {**destination(work).as_columns(), "power_state": facts["power_state"]}
            work.advance_to_task("leave")

    # ------------------------------------------------------------ the source has forgotten it

    def release(self, batch: Sequence[Work[LiveMigrateState]]) -> None:
        for work in batch:
            self._tools.both_ends.release_source(work.state.move.migration_uuid)
            work.changes |= {"vm_state": VmState.ACTIVE.value, "task_state": None}
            self.record(work, MigrationStatus.COMPLETED)
            self.note(work, "compute_post_live_migration_at_destination", host=work.server.host)
            work.finish()

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
        if wish is not None:
            self._tools.agents.signal(work, source(work).host, _SIGNALS[LiveMigrationWish(wish)])
