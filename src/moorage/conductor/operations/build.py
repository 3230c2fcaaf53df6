"""Build: ports, a host, an address, a spawn; and the next host where one of them fails there.

    begin (ports) → schedule (a host, and a claim on it) → agree (server groups) → bind (ports to the host)
    → spawn → spawned → plugged (the ports are up) → unpause (if it held still meanwhile) → unpaused
        ↓ if the host fails it
      reschedule → schedule, or if no other may be tried: fail (what it holds is given back)

Amid an upgrade, agents may do the ports' part of `begin` and `bind`, before they spawn: see `port_duties.py`.

A conductor whose lease has ended may wake up in the middle of any step. So a build that goes on takes nothing
away, it only puts something else in its place; and that it fails is written down before anything is released.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, ClassVar

import msgspec
from sqlalchemy.engine import Connection

from moorage.bus.contract import NO_ROOM
from moorage.compute.hosts import build_failures
from moorage.compute.ports import shown_addresses
from moorage.compute.ports.external_events import PLUGGED
from moorage.compute.servers import actions, server_spec
from moorage.compute.servers.actions import Event
from moorage.compute.servers.fault import fault
from moorage.compute.servers.states import TaskState, VmState
from moorage.compute.servers.traces import AttemptRecord
from moorage.conductor.agents import lasting_hardware
from moorage.conductor.engine.work import Done, Failed, Silent, Work
from moorage.conductor.operations.kind import OperationKind
from moorage.conductor.placing import groups
from moorage.conductor.placing.placing import DisputedClaim
from moorage.conductor.ports import late_ports, plugging, server_ports
from moorage.conductor.ports.port_duties import PortDuty
from moorage.core.clock import utcnow
from moorage.deciding.decider import NoHost
from moorage.drivers.contract import PAUSED, RUNNING
from moorage.ledger.declared import LATER, Awaited, Step, Wait, back_by, refused
from moorage.network import delegation
from moorage.network.contract import NetworkError, PortRecord

LOG = logging.getLogger(__name__)
_PENDING_LOOK_SECONDS = 5.0
_DISPUTE_SECONDS = 0.5
_LEAVE = back_by("reschedule")
_ON_NO_HOST = ("begin", "schedule")
_PEER_LOOKS, _PEER_SECONDS = 20, 3.0
"""How often, and how long, a build waits for a peer to take over from a host that died."""


class BuildState(PortDuty, kw_only=True, omit_defaults=True):
    power_state: int = 1
    spawned_at: datetime | None = None
    decided_at: int | None = None
    """The attempt at which its host was decided on, if that got a further task since."""
    last_error: str | None = None
    """Why the build fails; it is there from the moment that this is certain."""


class Build(OperationKind):
    name = "build"
    state: ClassVar[type[BuildState]] = BuildState
    steps: ClassVar[tuple[Step, ...]] = (
        Step("begin", then=("schedule", "fail"), cancel=back_by("fail")),
        Step("schedule", then=("agree", "fail"), waits=Wait(Awaited.ROOM), cancel=back_by("fail")),
        Step("agree", then=("bind", "reschedule"), cancel=_LEAVE),
        Step("bind", then=("spawn", "prepare_late", "reschedule"), cancel=_LEAVE),
        Step("prepare_late", then=("bind", "reschedule"), cancel=_LEAVE),
        Step("spawn", then=("spawned",), cancel=_LEAVE),
        Step("spawned", then=("plugged", "spawn", "reschedule"), waits=Wait(Awaited.ANSWER), cancel=_LEAVE),
        Step("plugged", then=("unpause", "reschedule"), waits=Wait(Awaited.PORTS), cancel=_LEAVE),
        Step("unpause", then=("unpaused",), cancel=_LEAVE),
        Step("unpaused", then=("unpause", "reschedule"), waits=Wait(Awaited.ANSWER), cancel=_LEAVE),
        Step("reschedule", then=("schedule", "fail"), cancel=LATER),
        Step("fail", cancel=refused("it gives back what it holds already")),
    )
    notification = "create"
    event: ClassVar[str] = "compute__do_build_and_run_instance"
    """What instance actions call it."""

    def begin(self, batch: Sequence[Work[BuildState]]) -> None:
        if not self._tools.port_duties.division().early:
            for work in batch:
                work.state.late_ports = True
                work.go_on("schedule")
            return
        for work, ports in self._prepared(batch):
            if isinstance(ports, NetworkError):
                _end(work, str(ports))
            elif ports:
                server_ports.keep(work, ports)
                work.advance("schedule")
            else:
                work.go_on("schedule")

    def _prepared(
        self, batch: Sequence[Work[BuildState]]
    ) -> list[tuple[Work[BuildState], list[PortRecord] | NetworkError]]:
        """Phase 1; nothing is decided before Neutron has answered for all."""
        outcomes = self._tools.network.prepare([server_ports.order(work.server) for work in batch])
        for work in batch:
            work.state.late_ports = False
        return list(zip(batch, outcomes, strict=True))

    def schedule(self, batch: Sequence[Work[BuildState]]) -> None:
        for work, decision in zip(batch, self._tools.placer.place(batch), strict=True):
            if isinstance(decision, NoHost):
                self._no_host(work, decision)
                continue
            if isinstance(decision, DisputedClaim):
                work.try_again("schedule", _DISPUTE_SECONDS)
                continue
            work.state.placed = decision
            work.state.tried_nodes.append(decision.node_uuid)
            work.changes |= {
                "host": decision.host,
                "node": decision.node,
                "node_uuid": decision.node_uuid,
                "availability_zone": decision.zone,
                "task_state": TaskState.NETWORKING.value,
            }
            work.advance("agree")

    def agree(self, batch: Sequence[Work[BuildState]]) -> None:
        """Members of server groups go nowhere before their group has agreed."""
        refused = groups.refused(self._tools.database, batch)
        for work in batch:
            if work.operation.id in refused:
                _give_up_here(work, "agree", "refused", "other members of its group were quicker")
                work.advance("reschedule")
            else:
                work.go_on("bind")

    def _no_host(self, work: Work[BuildState], refusal: NoHost) -> None:
        waited = utcnow() - work.operation.created_at
        if refusal.hopeless or waited >= timedelta(seconds=self._tools.pending_timeout):
            _end(work, _with_last_failure(work, refusal.sentence))
            return
        work.changes |= {"task_state": TaskState.PENDING.value}
        work.wait("schedule", _PENDING_LOOK_SECONDS, refusal.sentence)

    def bind(self, batch: Sequence[Work[BuildState]]) -> None:
        whose = self._tools.port_duties.split(batch)
        for work in whose.nowhere:
            self._leave_host(work, _nobody(work), allowed=True)
        for work in whose.there:
            self._tools.port_duties.delegate(work)
            work.changes["task_state"] = TaskState.SPAWNING.value
            work.go_on("spawn")
        for work in whose.here:
            if work.state.late_ports:
                work.go_on("prepare_late")
        self._bind_here([work for work in whose.here if not work.state.late_ports])

    def prepare_late(self, batch: Sequence[Work[BuildState]]) -> None:
        """Phase 1 for agents that touch no ports; from here on theirs are as if made early."""
        for work, ports in self._prepared(batch):
            if isinstance(ports, NetworkError):
                self._try_elsewhere(work, "bind", str(ports), allowed=False)
            else:
                server_ports.keep(work, ports)
                work.advance("bind")

    def _bind_here(self, batch: Sequence[Work[BuildState]]) -> None:
        bindings = [server_ports.binding_at(work, work.state.place) for work in batch]
        for work, ports in zip(batch, self._tools.network.bind(bindings), strict=True):
            if isinstance(ports, NetworkError):
                self._unbindable(work, ports)
                continue
            server_ports.keep(work, ports)
            work.state.delegated_ports = None
            work.changes |= {
                "task_state": TaskState.SPAWNING.value,
                "addresses": shown_addresses.addresses(ports),
            }
            work.go_on("spawn")

    def _unbindable(self, work: Work[BuildState], error: NetworkError) -> None:
        """A cell without addresses is left as a whole, which does not count as a failure of a host."""
        if error.cell is None:
            self._leave_host(work, str(error), allowed=error.retry_elsewhere)
            return
        work.state.full_cells.append(error.cell)
        _give_up_here(work, "bind", "refused", str(error))
        work.advance("reschedule")

    def _leave_host(self, work: Work[BuildState], error: str, *, allowed: bool) -> None:
        """Ports are bound at a host, whatever the node: its other nodes come last."""
        work.state.failed_hosts.append(work.state.place.host)
        self._try_elsewhere(work, "bind", error, allowed=allowed)

    def spawn(self, batch: Sequence[Work[BuildState]]) -> None:
        self._tools.agents.ask(batch, "spawn", then="spawned", payload=self._spawn_payload)

    def _spawn_payload(self, work: Work[BuildState]) -> dict[str, Any]:
        """The server, and what is left to the agent to do for its ports."""
        delegated = work.state.delegated_ports
        paused = plugging.holds_still(work, self._tools.network, self._tools.plugging)
        spec = self.spec(work, allocations=work.state.place.allocations, paused=paused)
        return spec if delegated is None else {**spec, delegation.DELEGATED: delegation.payload(delegated)}

    def spec(self, work: Work[Any], **differences: Any) -> dict[str, Any]:
        """What is to be made."""
        return server_spec.of(work.server, **differences)

    def spawned(self, batch: Sequence[Work[BuildState]]) -> None:
        for work, answer in self._tools.agents.answers(batch, "spawn", patient=self._is_up):
            match answer:
                case Done(facts):
                    work.state.power_state = facts.get("power_state", 1)
                    work.state.spawned_at = utcnow()
                    _keep_made(work, facts)
                    lasting_hardware.keep(work, facts)
                    work.go_on(PLUGGED)
                case Failed(error, retry_elsewhere, facts):
                    step = "reserve" if facts.get(NO_ROOM) else "spawn"
                    self._try_elsewhere(work, step, error, allowed=retry_elsewhere)
                case Silent():
                    self._no_answer(work, "spawned")

    def plugged(self, batch: Sequence[Work[BuildState]]) -> None:
        """Wait for the ports to come up. An event may nudge us, but the network has the last word."""
        waiting = [work for work in batch if self._tools.plugging.seconds and plugging.awaited(work)]
        up = self._tools.network.are_up([server_ports.holding(work) for work in waiting])
        down = {work.operation.id for work, is_up in zip(waiting, up, strict=True) if not is_up}
        ready = [work for work in batch if work.operation.id not in down]
        late_ports.drop(self._tools.network, [server_ports.holding(work) for work in ready])
        for work in batch:
            if work.operation.id not in down:
                self._plugged(work)
            elif not self._tools.plugging.over(work.state.spawned_at or work.operation.created_at):
                work.wait(PLUGGED, plugging.PLUG_LOOK_SECONDS)
            elif self._tools.plugging.fatal:
                self._try_elsewhere(work, "plug", "the ports did not come up in time", allowed=True)
            else:
                LOG.warning("server %s runs, but its ports are not up", work.server.uuid)
                self._plugged(work)

    def _plugged(self, work: Work[BuildState]) -> None:
        if work.state.power_state != PAUSED:
            self._running(work)
            return
        work.state.decided_at = work.operation.attempt
        work.advance_to_task("unpause")

    def unpause(self, batch: Sequence[Work[BuildState]]) -> None:
        self._tools.agents.ask(batch, "unpause", then="unpaused", payload=lambda _work: {})

    def unpaused(self, batch: Sequence[Work[BuildState]]) -> None:
        for work, answer in self._tools.agents.answers(batch, "unpause", patient=self._is_up):
            match answer:
                case Done(facts):
                    work.state.power_state = facts.get("power_state", RUNNING)
                    self._running(work)
                case Failed(error, retry_elsewhere):
                    self._try_elsewhere(work, "unpause", error, allowed=retry_elsewhere)
                case Silent():
                    self._no_answer(work, "unpaused")

    def _is_up(self, work: Work[BuildState]) -> bool:
        return work.server.host in self._tools.hosts.up()

    def _no_answer(self, work: Work[BuildState], step: str) -> None:
        """A host that died is left, unless a peer takes over."""
        if self._is_up(work):
            self._try_elsewhere(work, "spawn", "the host did not answer", allowed=True)
        elif work.operation.tries < _PEER_LOOKS and self._tools.hosts.has_live_peer(work.server.host or ""):
            work.try_again(step, _PEER_SECONDS)
        else:
            self._try_elsewhere(work, "spawn", "the host went down", allowed=True)

    def _running(self, work: Work[BuildState]) -> None:
        now = utcnow()
        work.changes |= {
            "vm_state": VmState.ACTIVE.value,
            "task_state": None,
            "power_state": work.state.power_state,
            "launched_at": now,
            "progress": 100,
            "fault": None,
        }
        self._note(work)
        work.write_together(build_failures.end, work.state.place.node_uuid)
        work.finish()

    def _try_elsewhere(self, work: Work[BuildState], step: str, error: str, *, allowed: bool) -> None:
        self._note(work, error)
        if step == "spawn":
            work.write_together(build_failures.add, work.state.place.node_uuid)
        _give_up_here(work, step, "failed", error)
        if not allowed or work.state.failures() >= self._tools.max_attempts:
            work.state.last_error = error
        work.advance("reschedule")

    def reschedule(self, batch: Sequence[Work[BuildState]]) -> None:
        """Leave the host that failed: its ports are unbound and kept, its claim stays until the next one."""
        self._tools.agents.leave(batch)
        for work in batch:
            placed, ports = work.state.place, server_ports.of(work)
            server_ports.keep(work, self._tools.network.unbind(ports, placed.host, placed.node_uuid))
            work.changes |= {"host": None, "node": None, "node_uuid": None, "addresses": {}}
            work.writes.append(partial(_leave_group, work.server.id))
            work.operation.attempt += 1
            work.state.delegated_ports = work.state.decided_at = None
            if work.state.last_error is not None:
                work.advance("fail")
                continue
            work.changes["task_state"] = TaskState.SCHEDULING.value
            work.advance("schedule")

    def fail(self, batch: Sequence[Work[BuildState]]) -> None:
        """Release everything. Nothing is claimed after this: twice, or without a lease, does no harm."""
        self._tools.placer.release(batch)
        self._tools.network.release([server_ports.holding(work) for work in batch])
        for work in batch:
            error, work.state.last_error = work.state.last_error or "", None
            server_ports.keep(work, [])
            work.changes |= {
                "vm_state": VmState.ERROR.value,
                "task_state": None,
                "fault": fault(error),
                "addresses": {},
            }
            work.fail(error)

    def give_up(self, work: Work[BuildState], error: str) -> None:
        """What the server holds is left for a delete: it may be just that which can't be reached."""
        work.changes = {"vm_state": VmState.ERROR.value, "task_state": None, "fault": fault(error)}
        work.fail(error)

    def cancel(self, work: Work[BuildState], reason: str) -> None:
        """It fails, as if no other host could be tried: whatever it holds is given back."""
        if work.operation.step in _ON_NO_HOST:
            _end(work, reason)
        else:
            self._try_elsewhere(work, "cancel", reason, allowed=False)

    def _note(self, work: Work[Any], error: str | None = None) -> None:
        host = work.state.place.host
        work.write_together(actions.add_events, Event(work.operation.action_id, self.event, host, error))


def _end(work: Work[BuildState], error: str) -> None:
    """No host will be tried any more."""
    work.state.last_error = error
    work.advance("fail")


def _keep_made(work: Work[BuildState], facts: Mapping[str, Any]) -> None:
    """From here on a port is remembered alike, whoever made or bound it."""
    if delegation.MADE in facts:
        ports = msgspec.convert(facts[delegation.MADE], list[PortRecord])
        server_ports.keep(work, ports)
        work.changes["addresses"] = shown_addresses.addresses(ports)


def _nobody(work: Work[BuildState]) -> str:
    host = work.state.place.host
    return f"Neither the conductors nor the agent of host {host} have credentials for Neutron."


def _give_up_here(work: Work[BuildState], step: str, outcome: str, detail: str) -> None:
    """Keep for the server's story what became of it on this host."""
    decided_at = work.state.decided_at
    attempt = work.operation.attempt if decided_at is None else decided_at
    work.state.attempts.append(AttemptRecord(attempt, step, outcome, detail))


def _with_last_failure(work: Work[BuildState], sentence: str) -> str:
    """That hosts failed the server before is no reason yet: why the last one did."""
    attempts = work.state.attempts
    return f"{sentence} The last one: {attempts[-1].detail}" if attempts else sentence


def _leave_group(server_id: int, connection: Connection) -> None:
    groups.leave(connection, server_id)
