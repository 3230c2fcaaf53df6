"""Detach an interface: a server loses a port, and keeps the others.

    begin (its turn) → detach → detached → release (ours is deleted, the user's is unbound)
    → plan, claim (what it needed of the host is given back) → done

If the port is gone from the network already, nothing that the host says keeps the server from losing it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

import msgspec

from moorage.compute import actions, interfaces
from moorage.compute.actions import Event
from moorage.conductor import port_claims, server_ports, turns
from moorage.conductor.agents import Agents
from moorage.conductor.hosts import Hosts
from moorage.conductor.port_claims import Change, PortClaims
from moorage.conductor.runner import Step
from moorage.conductor.work import Work
from moorage.db.database import Database
from moorage.network.contract import Network, PortRecord, Reach

LOG = logging.getLogger(__name__)
_EVENT = "compute_detach_interface"


class DetachInterface:
    def __init__(
        self, database: Database, agents: Agents, hosts: Hosts, network: Network, claims: PortClaims
    ) -> None:
        self._database = database
        self._agents = agents
        self._hosts = hosts
        self._network = network
        self._claims = claims

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
        for work in turns.take(self._database, batch):
            if work.data["port"] not in {port.id for port in server_ports.of(work)}:  # asked for twice
                self._end(work)
                work.finish()
            elif self._has_no_network and not work.data.get("gone"):
                self.give_up(work, "the conductors have no credentials for Neutron")
            else:
                work.advance("detach")

    @property
    def _has_no_network(self) -> bool:
        """Then nobody could let go of the port once the host has."""
        return self._network.reach is Reach.AGENTS

    def detach(self, batch: Sequence[Work]) -> None:
        up = self._hosts.up()
        for work in batch:
            if work.server["host"] not in up:
                self._failed(work, "the host of the server is down")
        self._agents.ask(
            [work for work in batch if work.server["host"] in up],
            interfaces.DETACH,
            then="detached",
            payload=lambda work: {"port_id": work.data["port"]},
        )

    def detached(self, batch: Sequence[Work]) -> None:
        for work in batch:
            result = work.take_result()
            if result is None:
                if not self._agents.ask_again(work, "detach"):
                    self._failed(work, "the host did not answer")
            elif result["ok"]:
                work.advance("release")
            else:
                self._failed(work, result["error"])

    def release(self, batch: Sequence[Work]) -> None:
        for work in filter(Work.holds, batch):
            if not self._has_no_network:
                self._network.drop(server_ports.holding(work), work.data["port"])
            if _port(work).needs.groups:
                work.advance("plan")
            else:
                self._gone(work)

    def plan(self, batch: Sequence[Work]) -> None:
        for work in batch:
            work.data["claim"] = msgspec.to_builtins(self._claims.less(work.server, _port(work)))
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
        self._end(work)
        work.finish()

    def _failed(self, work: Work, error: str) -> None:
        if work.data.get("gone"):
            LOG.warning("server %s loses port %s, but %s", work.server["uuid"], work.data["port"], error)
            work.advance("release")
        else:
            self.give_up(work, error)

    def give_up(self, work: Work, error: str) -> None:
        """The server has what it had; its action says what went wrong."""
        self._end(work, error)
        work.fail(error)

    def _end(self, work: Work, error: str | None = None) -> None:
        work.writes.append(
            partial(interfaces.rest, server_id=work.server["id"], operation_id=work.operation.id)
        )
        event = Event(work.operation.action_id, _EVENT, work.server["host"], error)
        work.write_together(actions.add_events, event)


def _port(work: Work) -> PortRecord:
    return next(port for port in server_ports.of(work) if port.id == work.data["port"])
