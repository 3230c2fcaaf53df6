"""Who makes and binds the ports of servers, conductors or agents: a matter of the oldest agent that lives.

Once every live agent knows which ports are a conductor's, and the conductor has credentials, ports are made
before scheduling; once every live agent takes ports that are bound, they are bound here, too. Until then
agents do it, as they did before. One that has no credentials can't, and touches no port either: for its
servers conductors do both phases once the host is known.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Generic, TypeVar

import sqlalchemy as sa

from moorage.bus.versions import AgentVersion
from moorage.compute.hosts import liveness
from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.conductor.engine.work import Work
from moorage.conductor.placing.placed import Placing
from moorage.conductor.ports import server_ports
from moorage.db.among import among
from moorage.db.database import Database
from moorage.db.tables.compute import services
from moorage.network.contract import Network, NetworkAccess
from moorage.network.delegation import Delegated

LOG = logging.getLogger(__name__)

NETWORK_FACT = "network"
"""In what an agent says of itself: whether it has credentials for the network."""


class PortDivision(Enum):
    """Which phases are whose; the value says it for operators."""

    AGENTS_DO_BOTH = "agents make and bind the ports of servers, after scheduling"
    AGENTS_BIND = "conductors make the ports of servers, agents bind them"
    CONDUCTORS_DO_BOTH = "conductors make and bind the ports of servers"

    @property
    def early(self) -> bool:
        """Whether ports are made before scheduling."""
        return self is not PortDivision.AGENTS_DO_BOTH


class PortDuty(Placing, kw_only=True, omit_defaults=True):
    """What an operation remembers of who makes and binds its ports."""

    late_ports: bool = False
    """No conductor made them before scheduling."""
    delegated_ports: Delegated | None = None
    """What is left to the agent."""


D = TypeVar("D", bound=PortDuty)


@dataclass
class PortSplit(Generic[D]):
    """Servers whose ports are about to be bound."""

    here: list[Work[D]] = field(default_factory=list)
    there: list[Work[D]] = field(default_factory=list)
    """By the agents."""
    nowhere: list[Work[D]] = field(default_factory=list)
    """Neither we nor their agents have credentials."""


class PortDuties:
    def __init__(self, database: Database, network: Network, down_after: int) -> None:
        self._database = database
        self._network = network
        self._down_after = timedelta(seconds=down_after)
        self._lock = threading.Lock()
        self._said = PortDivision.CONDUCTORS_DO_BOTH

    def division(self) -> PortDivision:
        """As things are now; what changes is said once."""
        found, why = self._divide()
        with self._lock:
            is_news, self._said = found is not self._said, found
        if is_news and found is PortDivision.CONDUCTORS_DO_BOTH:
            LOG.info("from now on %s", found.value)
        elif is_news:
            LOG.warning("%s for now: %s", found.value, why)
        return found

    def _divide(self) -> tuple[PortDivision, str]:
        if self._network.reach is NetworkAccess.CONDUCTORS:
            return PortDivision.CONDUCTORS_DO_BOTH, ""
        if self._network.reach is NetworkAccess.AGENTS:
            return PortDivision.AGENTS_DO_BOTH, "this conductor has no credentials in [neutron]"
        ages = self._versions()
        for needed, division in (
            (AgentVersion.EARLY_PORTS, PortDivision.AGENTS_DO_BOTH),
            (AgentVersion.BOUND_PORTS, PortDivision.AGENTS_BIND),
        ):
            old = sorted(host for host, version in ages.items() if version < needed)
            if old:
                return division, f"first, {len(old)} agents have to be upgraded, that of {old[0]} among them"
        return PortDivision.CONDUCTORS_DO_BOTH, ""

    def split(self, batch: Sequence[Work[D]]) -> PortSplit[D]:
        """Of servers that have just found a host: for whom we go on, and for whom their agents do."""
        found = PortSplit[D]()
        agents_bind = self.division() is not PortDivision.CONDUCTORS_DO_BOTH
        willing = [work for work in batch if agents_bind or work.state.late_ports]
        able = self.networked([work.state.place.host for work in willing]) if willing else set()
        for work in batch:
            wants_none = work.server.request.get("networks") == "none"
            if wants_none or not (agents_bind or work.state.late_ports):
                found.here.append(work)
            elif work.state.place.host in able:
                found.there.append(work)
            elif self._network.reach is NetworkAccess.AGENTS:
                found.nowhere.append(work)
            else:
                found.here.append(work)
        return found

    def delegate(self, work: Work[PortDuty]) -> None:
        """Leave to the agent what is not done yet."""
        placed = work.state.place
        order = server_ports.order(work.server) if work.state.late_ports else None
        binding = server_ports.binding(work, placed.host, placed.cell)
        blind = self._network.reach is NetworkAccess.AGENTS
        delegated = Delegated(binding, order, await_plug=blind and not binding.by_driver)
        work.state.delegated_ports = delegated

    def networked(self, hosts: Collection[str] | None = None) -> set[str]:
        """Those of the hosts, or of all that live, whose agents have credentials."""
        query = sa.select(services.c.host, services.c.facts)
        with self._database.read() as connection:
            chosen = (
                liveness.is_up(self._down_after)
                if hosts is None
                else among(connection, services.c.host, list(hosts))
            )
            rows = connection.execute(query.where(services.c.binary == AGENT_BINARY, chosen)).all()
        return {host for host, facts in rows if facts.get(NETWORK_FACT)}

    def _versions(self) -> dict[str, int]:
        """Of agents that live: one that is gone holds nothing back."""
        query = sa.select(services.c.host, services.c.version)
        with self._database.read() as connection:
            rows = connection.execute(
                query.where(services.c.binary == AGENT_BINARY, liveness.is_up(self._down_after))
            )
            return dict(rows.all())
