"""What attaching and detaching an interface have in common: a port, a task for the host, an end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from moorage.compute.ports import interfaces
from moorage.compute.servers import actions
from moorage.compute.servers.actions import Event
from moorage.conductor.agents.agents import Agents
from moorage.conductor.engine.work import Work
from moorage.conductor.ports import server_ports
from moorage.conductor.ports.port_claims import PortClaims
from moorage.db.database import Database
from moorage.deciding.hosts import Hosts
from moorage.network.contract import Network, PortRecord

Failed = Callable[[Work, str], None]


@dataclass(frozen=True)
class PluggingTools:
    database: Database
    agents: Agents
    hosts: Hosts
    network: Network
    claims: PortClaims

    def order(
        self,
        batch: Sequence[Work],
        task: str,
        *,
        then: str,
        payload: Callable[[Work], dict[str, Any]],
        failed: Failed,
    ) -> None:
        """Have the servers' hosts do it; of one that is down nothing can be had."""
        up = self.hosts.up()
        for work in batch:
            if work.server["host"] not in up:
                failed(work, "the host of the server is down")
        able = [work for work in batch if work.server["host"] in up]
        self.agents.ask(able, task, then=then, payload=payload)

    def done(self, batch: Sequence[Work], step: str, failed: Failed) -> list[Work]:
        """Those whose hosts have done it; the others are asked again at `step`, or have failed."""
        ready = []
        for work in batch:
            result = work.take_result()
            if result is None:
                if not self.agents.ask_again(work, step):
                    failed(work, "the host did not answer")
            elif result["ok"]:
                ready.append(work)
            else:
                failed(work, result["error"])
        return ready


def end(work: Work, event: str, error: str | None = None) -> None:
    """The server rests, and its action tells what came of it."""
    work.writes.append(partial(interfaces.rest, server_id=work.server["id"], operation_id=work.operation.id))
    work.write_together(
        actions.add_events, Event(work.operation.action_id, event, work.server["host"], error)
    )
    if error is None:
        work.finish()
    else:
        work.fail(error)


def port_of(work: Work) -> PortRecord:
    """The one that the operation is about."""
    return next(port for port in server_ports.of(work) if port.id == work.data["port"])
