"""Detach an interface: a server loses a port, and keeps the others.

    begin (its turn) → detach → detached → release (ours is deleted, the user's is unbound)
    → plan, claim (what it needed of the host is given back) → done

If the port is gone from the network already, nothing that the host says keeps the server from losing it.
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
from moorage.network.contract import Reach

LOG = logging.getLogger(__name__)
_EVENT = "compute_detach_interface"


class DetachInterface:
    def __init__(self, tools: PluggingTools) -> None:
        self._tools = tools
        self._network = tools.network
        self._claims = tools.claims

    def steps(self) -> dict[str, Step]:
        return {
            "begin": self.begin,
            "detach": self.detach,
            "detached": self.detached,
            "release": self.release,
            "plan": self.plan,
            "claim": self.claim,
        }

    def begin(self, batch: Sequence[Work]) -> None:
        for work in turns.take(self._tools.database, batch):
            if work.data["port"] not in {port.id for port in server_ports.of(work)}:  # asked for twice
                end(work, _EVENT)
            elif self._has_no_network and not work.data.get("gone"):
                self.give_up(work, "the conductors have no credentials for Neutron")
            else:
                work.advance("detach")

    @property
    def _has_no_network(self) -> bool:
        """Then nobody could let go of the port once the host has."""
        return self._network.reach is Reach.AGENTS

    def detach(self, batch: Sequence[Work]) -> None:
        self._tools.order(
            batch,
            interfaces.DETACH,
            then="detached",
            payload=lambda work: {"port_id": work.data["port"]},
            failed=self._failed,
        )

    def detached(self, batch: Sequence[Work]) -> None:
        for work in self._tools.done(batch, "detach", self._failed):
            work.advance("release")

    def release(self, batch: Sequence[Work]) -> None:
        for work in filter(Work.holds, batch):
            if not self._has_no_network:
                self._network.drop(server_ports.holding(work), work.data["port"])
            if port_of(work).needs.groups:
                work.advance("plan")
            else:
                self._gone(work)

    def plan(self, batch: Sequence[Work]) -> None:
        for work in batch:
            work.data["claim"] = msgspec.to_builtins(self._claims.less(work.server, port_of(work)))
            work.advance("claim")

    def claim(self, batch: Sequence[Work]) -> None:
        for work in filter(Work.holds, batch):
            if self._claims.make_true(work.server, msgspec.convert(work.data["claim"], Change)):
                self._gone(work)
            elif port_claims.may_plan_again(work):
                work.wait("plan", port_claims.PLAN_AGAIN_SECONDS)
            else:
                LOG.warning("server %s may hold more than it needs in Placement", work.server["uuid"])
                self._gone(work)

    def _gone(self, work: Work) -> None:
        server_ports.lose(work, work.data["port"])
        work.changes["addresses"] = server_ports.addresses(server_ports.of(work))
        end(work, _EVENT)

    def _failed(self, work: Work, error: str) -> None:
        if work.data.get("gone"):
            LOG.warning("server %s loses port %s, but %s", work.server["uuid"], work.data["port"], error)
            work.advance("release")
        else:
            self.give_up(work, error)

    def give_up(self, work: Work, error: str) -> None:
        """The server has what it had; its action says what went wrong."""
        end(work, _EVENT, error)
