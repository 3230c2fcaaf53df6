"""Build: ports, a host, an address, a spawn; and the next host where one of them fails there.

    begin (ports) → schedule (a host, and a claim on it) → agree (server groups) → bind (ports to the host)
    → spawn → spawned → plugged (the ports are up)
        ↓ if the host fails it
      reschedule → schedule, or if no other may be tried: fail (what it holds is given back)

Amid an upgrade, agents may do the ports' part of `begin` and `bind`, before they spawn: see `port_duties.py`.

A conductor that was thought dead may wake up in the middle of any step. So a build that goes on takes nothing
away, it only puts something else in its place; and that it fails is written down before anything is let go.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from moorage.bus.contract import NO_ROOM
from moorage.compute.hosts import build_failures
from moorage.compute.ports.external_events import PLUGGED
from moorage.compute.servers import actions, traces
from moorage.compute.servers.actions import Event
from moorage.compute.servers.fault import fault
from moorage.compute.servers.states import TaskState, VmState
from moorage.conductor.agents import server_spec
from moorage.conductor.agents.agents import Agents
from moorage.conductor.engine.runner import Step
from moorage.conductor.engine.work import Work
from moorage.conductor.placing import groups
from moorage.conductor.placing.placing import BINDS_PORTS, FAILED_HOSTS, Disputed, Placer
from moorage.conductor.ports import server_ports
from moorage.conductor.ports.plugging import Plugging
from moorage.conductor.ports.port_duties import LATE, PortDuties
from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.deciding.decider import NoHost
from moorage.network import delegation
from moorage.network.contract import Network, NetworkError, Order, PortRecord

LOG = logging.getLogger(__name__)
_PENDING_LOOK_SECONDS = 5.0
_DISPUTE_SECONDS = 0.5
_HEIR_LOOKS, _HEIR_SECONDS = 20, 3.0
"""How often, and how long, a build waits for a peer to take over from a host that died."""
PLUG_LOOK_SECONDS = 2.0
_LAST_ERROR = "last_error"
"""Why the build fails; it is there from the moment that this is certain."""


class Build:
    def __init__(
        self,
        database: Database,
        placer: Placer,
        agents: Agents,
        network: Network,
        *,
        max_attempts: int,
        pending_timeout: int,
        plugging: Plugging | None = None,
        duties: PortDuties,
    ) -> None:
        self._database = database
        self._placer = placer
        self._agents = agents
        self._network = network
        self._max_attempts = max_attempts
        self._pending_timeout = pending_timeout
        self._plugging = plugging or Plugging()
        self._duties = duties

    def steps(self) -> dict[str, Step]:
        return {
            "begin": self.begin,
            "schedule": self.schedule,
            "agree": self.agree,
            "bind": self.bind,
            "prepare_late": self.prepare_late,
            "spawn": self.spawn,
            "spawned": self.spawned,
            PLUGGED: self.plugged,
            "reschedule": self.reschedule,
            "fail": self.fail,
        }

    def begin(self, batch: Sequence[Work]) -> None:
        if not self._duties.division().early:
            for work in batch:
                work.data[LATE] = True
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

    def _prepared(self, batch: Sequence[Work]) -> list[tuple[Work, list[PortRecord] | NetworkError]]:
        """Phase 1; nothing is decided before Neutron has answered for all."""
        outcomes = self._network.prepare([Order.of(work.server) for work in batch])
        for work in batch:
            work.data.pop(LATE, None)
        return list(zip(batch, outcomes, strict=True))

    def schedule(self, batch: Sequence[Work]) -> None:
        for work, decision in zip(batch, self._placer.place(batch), strict=True):
            if isinstance(decision, NoHost):
                self._no_host(work, decision)
                continue
            if isinstance(decision, Disputed):
                work.try_again("schedule", _DISPUTE_SECONDS)
                continue
            work.data["placed"] = decision
            work.data.setdefault("tried_nodes", []).append(decision["node_uuid"])
            work.changes |= {
                "host": decision["host"],
                "node": decision["node"],
                "node_uuid": decision["node_uuid"],
                "availability_zone": decision["zone"],
                "task_state": TaskState.NETWORKING.value,
            }
            work.advance("agree")

    def agree(self, batch: Sequence[Work]) -> None:
        """Members of server groups go nowhere before their group has agreed."""
        refused = groups.refused(self._database, batch)
        for work in batch:
            if work.operation.id in refused:
                _give_up_here(work, "agree", "refused", "other members of its group were quicker")
                work.advance("reschedule")
            else:
                work.go_on("bind")

    def _no_host(self, work: Work, refusal: NoHost) -> None:
        waited = utcnow() - work.operation.created_at
        if refusal.hopeless or waited >= timedelta(seconds=self._pending_timeout):
            _end(work, _with_last_failure(work, refusal.sentence))
            return
        work.changes |= {"task_state": TaskState.PENDING.value}
        work.wait("schedule", _PENDING_LOOK_SECONDS)

    def bind(self, batch: Sequence[Work]) -> None:
        whose = self._duties.split(batch)
        for work in whose.nowhere:
            self._leave_host(work, _nobody(work), allowed=True)
        for work in whose.there:
            self._duties.delegate(work)
            work.changes["task_state"] = TaskState.SPAWNING.value
            work.go_on("spawn")
        for work in whose.here:
            if work.data.get(LATE):
                work.go_on("prepare_late")
        self._bind_here([work for work in whose.here if not work.data.get(LATE)])

    def prepare_late(self, batch: Sequence[Work]) -> None:
        """Phase 1 for agents that touch no ports; from here on theirs are as if made early."""
        for work, ports in self._prepared(batch):
            if isinstance(ports, NetworkError):
                self._try_elsewhere(work, "bind", str(ports), allowed=False)
            else:
                server_ports.keep(work, ports)
                work.advance("bind")

    def _bind_here(self, batch: Sequence[Work]) -> None:
        bindings = [
            server_ports.binding(work, work.data["placed"]["host"], work.data["placed"]["cell"])
            for work in batch
        ]
        for work, ports in zip(batch, self._network.bind(bindings), strict=True):
            if isinstance(ports, NetworkError):
                self._unbindable(work, ports)
                continue
            server_ports.keep(work, ports)
            work.data.pop(delegation.DELEGATED, None)
            work.changes |= {
                "task_state": TaskState.SPAWNING.value,
                "addresses": server_ports.addresses(ports),
            }
            work.go_on("spawn")

    def _unbindable(self, work: Work, error: NetworkError) -> None:
        """A cell without addresses is left as a whole, which does not count as a failure of a host."""
        if error.cell is None:
            self._leave_host(work, str(error), allowed=error.retry_elsewhere)
            return
        work.data.setdefault("full_cells", []).append(error.cell)
        _give_up_here(work, "bind", "refused", str(error))
        work.advance("reschedule")

    def _leave_host(self, work: Work, error: str, *, allowed: bool) -> None:
        """Ports are bound at a host, whatever the node: its other nodes come last."""
        work.data.setdefault(FAILED_HOSTS, []).append(work.data["placed"]["host"])
        self._try_elsewhere(work, "bind", error, allowed=allowed)

    def spawn(self, batch: Sequence[Work]) -> None:
        self._agents.ask(batch, "spawn", then="spawned", payload=_spawn_payload)

    def spawned(self, batch: Sequence[Work]) -> None:
        for work in batch:
            result = work.take_result()
            if result is None:
                self._no_answer(work)
            elif result["ok"]:
                work.data["power_state"] = result["facts"].get("power_state", 1)
                work.data["spawned_at"] = utcnow().isoformat()
                _keep_made(work, result["facts"])
                work.go_on(PLUGGED)
            else:
                step = "reserve" if result["facts"].get(NO_ROOM) else "spawn"
                self._try_elsewhere(work, step, result["error"], allowed=result["retry_elsewhere"])

    def plugged(self, batch: Sequence[Work]) -> None:
        """Wait for the ports to come up. An event may nudge us, but the network has the last word."""
        waiting = [work for work in batch if self._plugging.seconds and _awaits_plugging(work)]
        up = self._network.are_up([server_ports.holding(work) for work in waiting])
        down = {work.operation.id for work, is_up in zip(waiting, up, strict=True) if not is_up}
        for work in batch:
            if work.operation.id not in down:
                self._running(work)
            elif not self._plugging.over(datetime.fromisoformat(work.data["spawned_at"])):
                work.wait(PLUGGED, PLUG_LOOK_SECONDS)
            elif self._plugging.fatal:
                self._try_elsewhere(work, "plug", "the ports did not come up in time", allowed=True)
            else:
                LOG.warning("server %s runs, but its ports are not up", work.server["uuid"])
                self._running(work)

    def _no_answer(self, work: Work) -> None:
        """Ask again as long as the host lives; one that died is left, unless a peer takes over."""
        host = work.server["host"]
        if host in self._placer.hosts_up():
            if self._agents.ask_again(work, "spawn"):
                return
            self._try_elsewhere(work, "spawn", "the host did not answer", allowed=True)
        elif work.operation.tries < _HEIR_LOOKS and self._placer.has_heir(host):
            work.try_again("spawned", _HEIR_SECONDS)
        else:
            self._try_elsewhere(work, "spawn", "the host went down", allowed=True)

    def _running(self, work: Work) -> None:
        now = utcnow()
        work.changes |= {
            "vm_state": VmState.ACTIVE.value,
            "task_state": None,
            "power_state": work.data["power_state"],
            "launched_at": now,
            "progress": 100,
            "fault": None,
        }
        self._note(work, "compute__do_build_and_run_instance")
        work.write_together(build_failures.end, work.data["placed"]["node_uuid"])
        work.finish()

    def _try_elsewhere(self, work: Work, step: str, error: str, *, allowed: bool) -> None:
        self._note(work, "compute__do_build_and_run_instance", error)
        if step == "spawn":
            work.write_together(build_failures.add, work.data["placed"]["node_uuid"])
        _give_up_here(work, step, "failed", error)
        failures = [one for one in work.data[traces.ATTEMPTS] if one["outcome"] == "failed"]
        if not allowed or len(failures) >= self._max_attempts:
            work.data[_LAST_ERROR] = error
        work.advance("reschedule")

    def reschedule(self, batch: Sequence[Work]) -> None:
        """Leave the host that failed: its ports are unbound and kept, its claim stays until the next one."""
        self._agents.leave(batch)
        for work in batch:
            placed, ports = work.data["placed"], server_ports.of(work)
            server_ports.keep(work, self._network.unbind(ports, placed["host"], placed["node_uuid"]))
            work.changes |= {"host": None, "node": None, "node_uuid": None, "addresses": {}}
            work.writes.append(partial(_leave_group, work.server["id"]))
            work.operation.attempt += 1
            work.data.pop(delegation.DELEGATED, None)
            if _LAST_ERROR in work.data:
                work.advance("fail")
                continue
            work.changes["task_state"] = TaskState.SCHEDULING.value
            work.advance("schedule")

    def fail(self, batch: Sequence[Work]) -> None:
        """Let go of everything. Nothing is claimed after this, so it may as well be done twice, or late."""
        self._placer.release(batch)
        self._network.release([server_ports.holding(work) for work in batch])
        for work in batch:
            error = work.data.pop(_LAST_ERROR)
            server_ports.keep(work, [])
            work.changes |= {
                "vm_state": VmState.ERROR.value,
                "task_state": None,
                "fault": fault(error),
                "addresses": {},
            }
            work.fail(error)

    def give_up(self, work: Work, error: str) -> None:
        """What the server holds is left for a delete: it may be just that which can't be reached."""
        work.changes = {"vm_state": VmState.ERROR.value, "task_state": None, "fault": fault(error)}
        work.fail(error)

    def _note(self, work: Work, event: str, error: str | None = None) -> None:
        host = work.data["placed"]["host"]
        work.write_together(actions.add_events, Event(work.operation.action_id, event, host, error))


def _end(work: Work, error: str) -> None:
    """No host will be tried any more."""
    work.data[_LAST_ERROR] = error
    work.advance("fail")


def _spawn_payload(work: Work) -> dict[str, Any]:
    """The server, and what is left to the agent to do for its ports."""
    delegated = {key: work.data[key] for key in (delegation.DELEGATED,) if key in work.data}
    return {**server_spec.of(work.server), **delegated}


def _keep_made(work: Work, facts: Mapping[str, Any]) -> None:
    """From here on a port is remembered alike, whoever made or bound it."""
    if delegation.MADE in facts:
        ports = msgspec.convert(facts[delegation.MADE], list[PortRecord])
        server_ports.keep(work, ports)
        work.changes["addresses"] = server_ports.addresses(ports)


def _nobody(work: Work) -> str:
    host = work.data["placed"]["host"]
    return f"Neither the conductors nor the agent of host {host} have credentials for Neutron."


def _awaits_plugging(work: Work) -> bool:
    """What a driver has bound, it has plugged."""
    return bool(server_ports.of(work)) and not work.data["placed"].get(BINDS_PORTS)


def _give_up_here(work: Work, step: str, outcome: str, detail: str) -> None:
    """Keep for the server's story what became of it on this host."""
    record = traces.attempt_record(work.operation.attempt, step, outcome, detail)
    work.data.setdefault(traces.ATTEMPTS, []).append(record)


def _with_last_failure(work: Work, sentence: str) -> str:
    """That hosts failed the server before is no reason yet: why the last one did."""
    attempts = work.data.get(traces.ATTEMPTS)
    return f"{sentence} The last one: {attempts[-1]['detail']}" if attempts else sentence


def _leave_group(server_id: int, connection: Connection) -> None:
    groups.leave(connection, server_id)
