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

from moorage.compute.ports import interfaces
from moorage.conductor.engine import turns
from moorage.conductor.engine.runner import Step
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.plugging_tools import PluggingTools, end, port_of
from moorage.conductor.ports import port_claims, server_ports
from moorage.conductor.ports.port_claims import Change
from moorage.network.contract import Binding, Fault, NetworkError, Order

LOG = logging.getLogger(__name__)
_EVENT = "compute_attach_interface"


class AttachInterface:
    def __init__(self, tools: PluggingTools) -> None:
        self._tools = tools
        self._network = tools.network
        self._claims = tools.claims

    def steps(self) -> dict[str, Step]:
        return {
            "begin": self.begin,
            "prepare": self.prepare,
            "plan": self.plan,
            "claim": self.claim,
            "bind": self.bind,
            "attach": self.attach,
            "attached": self.attached,
            "undo": self.undo,
        }

    def begin(self, batch: Sequence[Work]) -> None:
        for work in turns.take(self._tools.database, batch):
            brought = _brought(work)
            if brought in {port.id for port in server_ports.of(work)}:  # it was asked for twice
                work.data["fault"] = Fault.CONFLICT.value
                self.give_up(work, f"Port {brought} is still in use.")
                continue
            server_ports.bring(work, brought)
            work.advance("prepare")

    def prepare(self, batch: Sequence[Work]) -> None:
        orders = [_order(work) for work in batch]
        for work, ports in zip(batch, self._network.prepare(orders), strict=True):
            if isinstance(ports, NetworkError):
                self._refuse(work, ports)
                continue
            (port,) = ports
            work.data["port"] = port.id
            tagged = msgspec.structs.replace(port, tag=work.data["tag"])
            server_ports.keep(work, [*server_ports.of(work), tagged])
            work.advance("plan" if port.needs.groups else "bind")

    def plan(self, batch: Sequence[Work]) -> None:
        for work in batch:
            change = self._claims.more(work.server, port_of(work))
            if change is None:
                self._refuse(work, _no_room(work))
                continue
            work.data["claim"] = msgspec.to_builtins(change)
            work.advance("claim")

    def claim(self, batch: Sequence[Work]) -> None:
        for work in filter(Work.holds, batch):
            if self._claims.make_true(work.server, _change(work)):
                work.advance("bind")
            elif port_claims.may_plan_again(work):
                work.wait("plan", port_claims.PLAN_AGAIN_SECONDS)
            else:
                self._refuse(work, _no_room(work))

    def bind(self, batch: Sequence[Work]) -> None:
        states = self._tools.hosts.states({work.server["node_uuid"] for work in batch})
        for work in batch:
            state = states.get(work.server["node_uuid"])
            if state is None:
                self._fail(work, "the server's node is gone")
                continue
            serving = work.data.get("claim", {}).get("providers", {})
            binding = Binding(
                work.server["uuid"],
                [port_of(work)],
                state.host,
                state.cell,
                state.zone or "",
                serving,
                state.binds_ports,
            )
            (bound,) = self._network.bind([binding])
            if isinstance(bound, NetworkError):
                self._refuse(work, bound)
                continue
            others = [port for port in server_ports.of(work) if port.id != work.data["port"]]
            server_ports.keep(work, [*others, *bound])
            work.advance("attach")

    def attach(self, batch: Sequence[Work]) -> None:
        self._tools.order(
            batch,
            interfaces.ATTACH,
            then="attached",
            payload=lambda work: {"port": msgspec.to_builtins(port_of(work))},
            failed=self._fail,
        )

    def attached(self, batch: Sequence[Work]) -> None:
        for work in self._tools.done(batch, "attach", self._fail):
            work.changes["addresses"] = server_ports.addresses(server_ports.of(work))
            end(work, _EVENT)

    def _refuse(self, work: Work, error: NetworkError) -> None:
        work.data["fault"] = error.fault.value
        self._fail(work, str(error))

    def _fail(self, work: Work, error: str) -> None:
        work.data["error"] = error
        work.advance("undo")

    def undo(self, batch: Sequence[Work]) -> None:
        for work in filter(Work.holds, batch):
            port_id = work.data.get("port") or _brought(work)
            if port_id:
                self._network.drop(server_ports.holding(work), port_id)
                server_ports.lose(work, port_id)
            if "claim" in work.data and not self._claims.make_true(work.server, _change(work).undone()):
                LOG.warning("server %s may hold more than it needs in Placement", work.server["uuid"])
            end(work, _EVENT, work.data["error"])

    def give_up(self, work: Work, error: str) -> None:
        """A port that is there already stays the server's: it may be just the network that is away."""
        end(work, _EVENT, error)


def _change(work: Work) -> Change:
    return msgspec.convert(work.data["claim"], Change)


def _no_room(work: Work) -> NetworkError:
    return NetworkError(
        f"Failed to allocate additional resources to {work.server['uuid']} during interface attach."
    )


def _order(work: Work) -> Order:
    """More of what the server has."""
    known = frozenset(port.id for port in server_ports.of(work))
    order = Order.of({**work.server, "request": {"networks": work.data["networks"]}})
    return msgspec.structs.replace(order, zone=work.server["availability_zone"] or "", known=known)


def _brought(work: Work) -> str:
    """The port that the user asked for; empty if one is to be made."""
    networks = work.data["networks"]
    return str(networks[0].get("port") or "") if isinstance(networks, list) else ""
