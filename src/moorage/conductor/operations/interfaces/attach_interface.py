"""Attach an interface: one more port for a server that is on a host.

    begin (its turn) → prepare (get or make the port) → plan, claim (what it needs of the server's host)
    → bind (to that host) → attach → attached
        ↓ whatever fails
      undo (port and claim: the server has what it had)

A port that the user brought is written down as such before it is taken, so that whoever deletes the server in
between leaves it alone.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from moorage.compute.ports import interfaces, shown_addresses
from moorage.conductor.engine import turns
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.interfaces.interfaces import InterfaceKind, InterfaceState, end, port_of
from moorage.conductor.ports import port_claims, server_ports
from moorage.ledger.declared import GIVE_UP, LATER, Awaited, Step, Wait, back_by, refused
from moorage.ledger.operation import FIRST_STEP
from moorage.network.contract import Binding, NetworkError, NetworkFault, Networks, PortRequest

LOG = logging.getLogger(__name__)
_EVENT = "compute_attach_interface"
_UNDO = back_by("undo")


class AttachState(InterfaceState, kw_only=True, omit_defaults=True):
    networks: Networks
    """What was agreed to: one network, or one port."""
    tag: str | None = None
    fault: str | None = None
    """What the network had against it."""
    error: str = ""
    """Why it is undone."""

    @property
    def brought(self) -> str:
        """The port that the user asked for; empty if one is to be made."""
        return str(self.networks[0].get("port") or "") if isinstance(self.networks, list) else ""


class AttachInterface(InterfaceKind):
    name = interfaces.ATTACH
    state = AttachState
    steps = (
        Step("begin", then=("prepare",), waits=Wait(Awaited.TURN), cancel=GIVE_UP),
        Step("prepare", then=("plan", "bind", "undo"), cancel=LATER),
        Step("plan", then=("claim", "undo"), cancel=_UNDO),
        Step("claim", then=("bind", "plan", "undo"), cancel=_UNDO),
        Step("bind", then=("attach", "undo"), cancel=_UNDO),
        Step("attach", then=("attached", "undo"), cancel=_UNDO),
        Step("attached", then=("attach", "undo"), waits=Wait(Awaited.ANSWER), cancel=_UNDO),
        Step("undo", cancel=refused("it is undone already")),
    )
    notification = "interface_attach"

    def begin(self, batch: Sequence[Work[AttachState]]) -> None:
        for work in turns.take(self._tools.database, batch):
            brought = work.state.brought
            if brought in {port.id for port in server_ports.of(work)}:  # it was asked for twice
                work.state.fault = NetworkFault.CONFLICT.value
                self.give_up(work, f"Port {brought} is still in use.")
                continue
            server_ports.bring(work, brought)
            work.advance("prepare")

    def prepare(self, batch: Sequence[Work[AttachState]]) -> None:
        orders = [_order(work) for work in batch]
        for work, ports in zip(batch, self._tools.network.prepare(orders), strict=True):
            if isinstance(ports, NetworkError):
                self._refuse(work, ports)
                continue
            (port,) = ports
            work.state.port = port.id
            tagged = msgspec.structs.replace(port, tag=work.state.tag)
            server_ports.keep(work, [*server_ports.of(work), tagged])
            work.advance("plan" if port.needs.groups else "bind")

    def plan(self, batch: Sequence[Work[AttachState]]) -> None:
        for work in batch:
            change = self._tools.port_claims.more(work.server, port_of(work))
            if change is None:
                self._refuse(work, _no_room(work))
                continue
            work.state.claim = change
            work.advance("claim")

    def claim(self, batch: Sequence[Work[AttachState]]) -> None:
        for work in filter(Work.holds, batch):
            assert work.state.claim is not None
            if self._tools.port_claims.make_true(work.server, work.state.claim):
                work.advance("bind")
            elif port_claims.may_plan_again(work):
                work.wait("plan", port_claims.PLAN_AGAIN_SECONDS)
            else:
                self._refuse(work, _no_room(work))

    def bind(self, batch: Sequence[Work[AttachState]]) -> None:
        states = self._tools.hosts.states({work.server.on_node for work in batch})
        for work in batch:
            state = states.get(work.server.on_node)
            if state is None:
                self._fail(work, "the server's node is gone")
                continue
            serving = work.state.claim.providers if work.state.claim is not None else {}
            binding = Binding(
                work.server.uuid,
                [port_of(work)],
                state.host,
                state.cell,
                state.zone or "",
                serving,
                state.binds_ports,
            )
            (bound,) = self._tools.network.bind([binding])
            if isinstance(bound, NetworkError):
                self._refuse(work, bound)
                continue
            others = [port for port in server_ports.of(work) if port.id != work.state.port]
            server_ports.keep(work, [*others, *bound])
            work.advance("attach")

    def attach(self, batch: Sequence[Work[AttachState]]) -> None:
        self.order(
            batch,
            interfaces.ATTACH,
            then="attached",
            payload=lambda work: {"port": msgspec.to_builtins(port_of(work))},
            failed=self._fail,
        )

    def attached(self, batch: Sequence[Work[AttachState]]) -> None:
        for work in self.done(batch, "attach", self._fail):
            work.changes["addresses"] = shown_addresses.addresses(server_ports.of(work))
            end(work, _EVENT)

    def _refuse(self, work: Work[AttachState], error: NetworkError) -> None:
        work.state.fault = error.fault.value
        self._fail(work, str(error))

    def _fail(self, work: Work[AttachState], error: str) -> None:
        work.state.error = error
        work.advance("undo")

    def cancel(self, work: Work[AttachState], reason: str) -> None:
        """Where a port may have been made that nobody has written down, that is found out first."""
        if work.operation.step == FIRST_STEP:
            self.give_up(work, reason)
        else:
            self._fail(work, reason)

    def undo(self, batch: Sequence[Work[AttachState]]) -> None:
        for work in filter(Work.holds, batch):
            port_id = work.state.port or work.state.brought
            if port_id:
                self._tools.network.drop(server_ports.holding(work), port_id)
                server_ports.lose(work, port_id)
            if not self._give_back(work):
                LOG.warning("server %s may hold more than it needs in Placement", work.server.uuid)
            end(work, _EVENT, work.state.error)

    def _give_back(self, work: Work[AttachState]) -> bool:
        claim = work.state.claim
        return claim is None or self._tools.port_claims.make_true(work.server, claim.undone())

    def give_up(self, work: Work[AttachState], error: str) -> None:
        """A port that is there already stays the server's: it may be just the network that is away."""
        end(work, _EVENT, error)


def _no_room(work: Work[AttachState]) -> NetworkError:
    return NetworkError(
        f"Failed to allocate additional resources to {work.server.uuid} during interface attach."
    )


def _order(work: Work[AttachState]) -> PortRequest:
    """More of what the server has."""
    server = work.server
    return PortRequest(
        server.uuid,
        server.project_id,
        server.name,
        work.state.networks,
        zone=server.availability_zone or "",
        hostname=server.hostname,
        known=frozenset(port.id for port in server_ports.of(work)),
    )
