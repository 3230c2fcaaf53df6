"""What operations work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moorage.conductor.agents.agents import Agents
from moorage.conductor.auditing.contract import AuditCheck
from moorage.conductor.placing.both_ends import BothEnds
from moorage.conductor.placing.fitness import Fitness
from moorage.conductor.placing.placing import Placer
from moorage.conductor.ports.plugging import PluggingTimeout
from moorage.conductor.ports.port_claims import PortClaims
from moorage.conductor.ports.port_duties import PortDuties
from moorage.db.database import Database
from moorage.deciding.hosts import Hosts
from moorage.images.contract import Images
from moorage.network.contract import Network
from moorage.placement.client.contract import PlacementClient


@dataclass(frozen=True)
class Tools:
    database: Database
    placement: PlacementClient
    network: Network
    images: Images
    agents: Agents
    hosts: Hosts
    placer: Placer
    both_ends: BothEnds
    fitness: Fitness
    port_claims: PortClaims
    port_duties: PortDuties
    plugging: PluggingTimeout
    max_attempts: int
    """Hosts that may fail a server before it is given up."""
    pending_timeout: int
    """Seconds that a server waits for a host that has room for it."""
    confirm_window: int = 0
    """Seconds after which a resize is confirmed by itself; 0 for never."""
    shelved_offload_time: int = 0
    """Seconds after which a shelved server leaves its host; less than 0 for never."""
    checks: Mapping[str, AuditCheck] = field(default_factory=dict)
    """Those of audits, by name."""
