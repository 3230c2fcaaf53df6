"""The operator's choices for scheduling, and the filters and weighers that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from moorage.scheduler.aggregates import AggregateFacts
from moorage.scheduler.filters.affinity import AffinityFilter
from moorage.scheduler.filters.aggregates import AggregatesFilter
from moorage.scheduler.filters.anti_affinity import AntiAffinityFilter
from moorage.scheduler.filters.contract import Filter
from moorage.scheduler.filters.different_host import DifferentHostFilter
from moorage.scheduler.filters.image_properties import ImagePropertiesFilter
from moorage.scheduler.filters.leaving import LeavingFilter
from moorage.scheduler.filters.requested_host import RequestedHostFilter
from moorage.scheduler.filters.same_host import SameHostFilter
from moorage.scheduler.filters.server_count import ServerCountFilter
from moorage.scheduler.filters.service import ServiceFilter
from moorage.scheduler.filters.tried import TriedFilter
from moorage.scheduler.prefilters.aggregate_images import AggregateImages
from moorage.scheduler.prefilters.contract import Prefilter
from moorage.scheduler.prefilters.image_hardware import ImageHardware
from moorage.scheduler.prefilters.isolated_aggregates import IsolatedAggregates
from moorage.scheduler.prefilters.tenant_isolation import TenantIsolation
from moorage.scheduler.weighers.build_failures import BuildFailureWeigher
from moorage.scheduler.weighers.contract import Weigher
from moorage.scheduler.weighers.cpu import CpuWeigher
from moorage.scheduler.weighers.disk import DiskWeigher
from moorage.scheduler.weighers.failed_host import FailedHostWeigher
from moorage.scheduler.weighers.pool import PoolWeigher
from moorage.scheduler.weighers.ram import RamWeigher
from moorage.scheduler.weighers.server_count import ServerCountWeigher
from moorage.scheduler.weighers.soft_affinity import SoftAffinityWeigher
from moorage.scheduler.weighers.soft_anti_affinity import SoftAntiAffinityWeigher
from moorage.topology.pci import PciAlias


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    max_candidates: int = 20
    """How many candidates one server's decision looks at."""
    max_attempts: int = 3
    """How many hosts are tried for a server, the first one included."""
    max_servers_per_node: int = 0
    """0 for no bound."""
    cpu_weight: float = 1.0
    ram_weight: float = 1.0
    disk_weight: float = 1.0
    server_count_weight: float = 0.0
    pool_weight: float = 1.0
    """How much it counts that a host which shares its machines with others has few servers."""
    soft_affinity_weight: float = 1.0
    soft_anti_affinity_weight: float = 1.0
    build_failure_weight: float = 1_000_000.0
    confine_projects: bool = True
    """Projects with aggregates of their own stay in them."""
    require_project_aggregates: bool = False
    """Projects without aggregates of their own go nowhere."""
    isolate_by_traits: bool = True
    isolate_by_images: bool = True
    require_image_hardware: bool = False
    """Only nodes that say they have the devices which an image names."""
    pci_aliases: Mapping[str, PciAlias] = field(default_factory=dict)
    """What flavors may ask for by name."""

    def image_hardware(self, image_properties: Mapping[str, str]) -> Iterator[Prefilter]:
        if self.require_image_hardware:
            yield ImageHardware(image_properties)

    def isolation(self, facts: AggregateFacts, image_properties: Mapping[str, str]) -> Iterator[Prefilter]:
        """What keeps servers in and out of aggregates, after their traits are known."""
        yield TenantIsolation(
            facts.projects, confined=self.confine_projects, required=self.require_project_aggregates
        )
        yield from self.image_isolation(facts, image_properties)

    def image_isolation(
        self, facts: AggregateFacts, image_properties: Mapping[str, str]
    ) -> Iterator[Prefilter]:
        """The part of it that another image may change."""
        if self.isolate_by_traits:
            yield IsolatedAggregates(facts.traits)
        if self.isolate_by_images:
            yield AggregateImages(facts.images, image_properties)

    def filters(self) -> tuple[Filter, ...]:
        """The cheapest and most telling first: a host is counted against the first that objects."""
        bound: tuple[Filter, ...] = ()
        if self.max_servers_per_node > 0:
            bound = (ServerCountFilter(self.max_servers_per_node),)
        return (
            TriedFilter(),
            RequestedHostFilter(),
            LeavingFilter(),
            ServiceFilter(),
            AggregatesFilter(),
            *bound,
            AffinityFilter(),
            AntiAffinityFilter(),
            SameHostFilter(),
            DifferentHostFilter(),
            ImagePropertiesFilter(),
        )

    def weighers(self) -> tuple[Weigher, ...]:
        """Those that count at all."""
        everyone: tuple[Weigher, ...] = (
            CpuWeigher(self.cpu_weight),
            RamWeigher(self.ram_weight),
            DiskWeigher(self.disk_weight),
            ServerCountWeigher(self.server_count_weight),
            PoolWeigher(self.pool_weight),
            SoftAffinityWeigher(self.soft_affinity_weight),
            SoftAntiAffinityWeigher(self.soft_anti_affinity_weight),
            BuildFailureWeigher(self.build_failure_weight),
            FailedHostWeigher(),
        )
        return tuple(weigher for weigher in everyone if weigher.multiplier)
