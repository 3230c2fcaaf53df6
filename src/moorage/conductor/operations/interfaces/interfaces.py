"""What attaching and detaching an interface have in common: a port, a task for the host, an end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from moorage.compute.ports import interfaces
from moorage.compute.servers import actions
from moorage.compute.servers.actions import Event
from moorage.conductor.engine.work import Done, Failed, Silent, Work
from moorage.conductor.operations.kind import OperationKind
from moorage.conductor.ports import server_ports
from moorage.conductor.ports.port_claims import ClaimChange
from moorage.network.contract import PortRecord

OnFailure = Callable[[Work[Any], str], None]


class InterfaceState(msgspec.Struct, kw_only=True, omit_defaults=True):
    port: str = ""
    """The one that it is about, once that is known."""
    claim: ClaimChange | None = None
    """Of what the server holds in Placement."""
    plans: int = 0
    """How often that was planned."""


class InterfaceKind(OperationKind):
    """What both are made with."""

    def order(
        self,
        batch: Sequence[Work[Any]],
        task: str,
        *,
        then: str,
        payload: Callable[[Work[Any]], dict[str, Any]],
        failed: OnFailure,
    ) -> None:
        """Have the servers' hosts do it; of one that is down nothing can be had."""
        up = self._tools.hosts.up()
        for work in batch:
            if work.server.host not in up:
                failed(work, "the host of the server is down")
        able = [work for work in batch if work.server.host in up]
        self._tools.agents.ask(able, task, then=then, payload=payload)

    def done(self, batch: Sequence[Work[Any]], step: str, failed: OnFailure) -> list[Work[Any]]:
        """Those whose hosts have done it; the others are asked again at `step`, or have failed."""
        ready = []
        for work, answer in self._tools.agents.answers(batch, step):
            match answer:
                case Done():
                    ready.append(work)
                case Failed(error):
                    failed(work, error)
                case Silent():
                    failed(work, "the host did not answer")
        return ready


def end(work: Work[Any], event: str, error: str | None = None) -> None:
    """The server rests, and its action tells what came of it."""
    work.writes.append(partial(interfaces.rest, server_id=work.server.id, operation_id=work.operation.id))
    work.write_together(actions.add_events, Event(work.operation.action_id, event, work.server.host, error))
    if error is None:
        work.finish()
    else:
        work.fail(error)


def port_of(work: Work[InterfaceState]) -> PortRecord:
    """The one that the operation is about."""
    return next(port for port in server_ports.of(work) if port.id == work.state.port)
