"""The register: every check that there is, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.conductor.auditing.checks.addresses import AddressesCheck
from moorage.conductor.auditing.checks.aggregates import AggregatesCheck
from moorage.conductor.auditing.checks.allocations import AllocationsCheck
from moorage.conductor.auditing.checks.counters import CountersCheck
from moorage.conductor.auditing.checks.era import EraCheck
from moorage.conductor.auditing.checks.host_servers import HostServersCheck
from moorage.conductor.auditing.checks.image_caches import ImageCachesCheck
from moorage.conductor.auditing.checks.ledger import LedgerCheck
from moorage.conductor.auditing.checks.lost_ports import LostPortsCheck
from moorage.conductor.auditing.checks.machines import MachinesCheck
from moorage.conductor.auditing.checks.moves import MovesCheck
from moorage.conductor.auditing.checks.nodes import NodesCheck
from moorage.conductor.auditing.checks.orphaned_providers import OrphanedProvidersCheck
from moorage.conductor.auditing.checks.ports import PortsCheck
from moorage.conductor.auditing.checks.providers import ProvidersCheck
from moorage.conductor.auditing.checks.queues import QueuesCheck
from moorage.conductor.auditing.checks.quotas import QuotasCheck
from moorage.conductor.auditing.contract import AuditCheck, AuditTools

CHECKS: tuple[type[AuditCheck], ...] = (
    AllocationsCheck,
    CountersCheck,
    QuotasCheck,
    AddressesCheck,
    PortsCheck,
    LostPortsCheck,
    NodesCheck,
    ProvidersCheck,
    OrphanedProvidersCheck,
    HostServersCheck,
    MachinesCheck,
    ImageCachesCheck,
    AggregatesCheck,
    MovesCheck,
    LedgerCheck,
    EraCheck,
    QueuesCheck,
)


def make(tools: AuditTools) -> Mapping[str, AuditCheck]:
    """By name."""
    return {check.name: check(tools) for check in CHECKS}
