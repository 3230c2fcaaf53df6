"""Detach an interface: a server loses a port, and keeps the others.

    begin (its turn) → detach → detached → release (ours is deleted, the user's is unbound)
    → plan, claim (what it needed of the host is given back) → done

If the port is gone from the network already, nothing that the host says keeps the server from losing it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from moorage.compute.ports import interfaces, shown_addresses
from moorage.conductor.engine import turns
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.interfaces.interfaces import InterfaceKind, InterfaceState, end, port_of
from moorage.conductor.ports import port_claims, server_ports
from moorage.ledger.declared import GIVE_UP, Awaited, Step, Wait, refused
from moorage.network.contract import NetworkAccess

LOG = logging.getLogger(__name__)
_EVENT = "compute_detach_interface"
_NO_CANCEL = refused("the port is being taken from the server already")


class DetachState(InterfaceState, kw_only=True, omit_defaults=True):
    gone: bool = False
    """The port is gone from the network already."""


class DetachInterface(InterfaceKind):
    name = interfaces.DETACH
    state = DetachState
    steps = (
        Step("begin", then=("detach",), waits=Wait(Awaited.TURN), cancel=GIVE_UP),
        Step("detach", then=("detached", "release"), cancel=_NO_CANCEL),
        Step("detached", then=("detach", "release"), waits=Wait(Awaited.ANSWER), cancel=_NO_CANCEL),
        Step("release", then=("plan",), cancel=_NO_CANCEL),
        Step("plan", then=("claim",), cancel=_NO_CANCEL),
        Step("claim", then=("plan",), cancel=_NO_CANCEL),
    )
    notification = "interface_detach"

    def begin(self, batch: Sequence[Work[DetachState]]) -> None:
        for work in turns.take(self._tools.database, batch):
            if work.state.port not in {port.id for port in server_ports.of(work)}:  # asked for twice
                end(work, _EVENT)
            elif self._has_no_network and not work.state.gone:
                self.give_up(work, "the conductors have no credentials for Neutron")
            else:
                work.advance("detach")

    @property
    def _has_no_network(self) -> bool:
        """Then nobody could release the port once the host has."""
        return self._tools.network.reach is NetworkAccess.AGENTS

    def detach(self, batch: Sequence[Work[DetachState]]) -> None:
        self.order(
            batch,
            interfaces.DETACH,
            then="detached",
            payload=lambda work: {"port_id": work.state.port},
            failed=self._failed,
        )

    def detached(self, batch: Sequence[Work[DetachState]]) -> None:
        for work in self.done(batch, "detach", self._failed):
            work.advance("release")

    def release(self, batch: Sequence[Work[DetachState]]) -> None:
        for work in filter(Work.holds, batch):
            if not self._has_no_network:
                self._tools.network.drop(server_ports.holding(work), work.state.port)
            if port_of(work).needs.groups:
                work.advance("plan")
            else:
                self._gone(work)

    def plan(self, batch: Sequence[Work[DetachState]]) -> None:
        for work in batch:
            work.state.claim = self._tools.port_claims.less(work.server, port_of(work))
            work.advance("claim")

    def claim(self, batch: Sequence[Work[DetachState]]) -> None:
        for work in filter(Work.holds, batch):
            assert work.state.claim is not None
            if self._tools.port_claims.make_true(work.server, work.state.claim):
                self._gone(work)
            elif port_claims.may_plan_again(work):
                work.wait("plan", port_claims.PLAN_AGAIN_SECONDS)
            else:
                LOG.warning("server %s may hold more than it needs in Placement", work.server.uuid)
                self._gone(work)

    def _gone(self, work: Work[DetachState]) -> None:
        server_ports.lose(work, work.state.port)
        work.changes["addresses"] = shown_addresses.addresses(server_ports.of(work))
        end(work, _EVENT)

    def _failed(self, work: Work[DetachState], error: str) -> None:
        if work.state.gone:
            LOG.warning("server %s loses port %s, but %s", work.server.uuid, work.state.port, error)
            work.advance("release")
        else:
            self.give_up(work, error)

    def give_up(self, work: Work[DetachState], error: str) -> None:
        """The server has what it had; its action says what went wrong."""
        end(work, _EVENT, error)
