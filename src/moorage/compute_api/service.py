"""The Compute service of one process: all that its handlers need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from oslo_config import cfg

from moorage.bus.asking import NobodyToAsk
from moorage.bus.contract import AskingSide
from moorage.bus.notifications import NoNotifications, Notifications
from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.compute.aggregates.mirror import Mirror
from moorage.compute.aggregates.zones import Zones
from moorage.compute.hosts.status_mirror import StatusMirror
from moorage.compute.operations.standing import Onlooker
from moorage.compute.options import QUOTAS
from moorage.compute.quotas.limits import QuotaLimits, StoredLimits
from moorage.compute.quotas.unified import UnifiedLimits
from moorage.compute.reference_cache import ReferenceCache, ReferenceSnapshot
from moorage.compute.servers import creation
from moorage.compute.servers.creation import CreatedServers, CreationRequest
from moorage.compute_api.hosts.background_mirror import BackgroundMirror
from moorage.core.health import HealthCheck
from moorage.db.database import Database
from moorage.db.desk import Desk
from moorage.deciding.cloud_picture import CloudPictures
from moorage.deciding.decider import Decider
from moorage.deciding.hosts import Hosts
from moorage.deciding.planner import Planner
from moorage.deciding.rebalancer import Rebalancer
from moorage.images.contract import Images
from moorage.network.contract import Network
from moorage.placement.client.contract import PlacementClient
from moorage.scheduler.settings import SchedulerSettings


@dataclass(frozen=True)
class ComputeSettings:
    service_down_time: int
    max_limit: int
    default_zone: str
    internal_zone: str
    quotas: Mapping[str, int]
    """The configured limits, by resource."""
    attach_timeout: int = 60
    allow_resize_to_same_host: bool = False
    force_config_drive: bool = False
    """All new servers have one."""
    reclaim_interval: int = 0
    """Seconds for which deleted servers are kept."""
    question_timeout: float = 20.0
    """Seconds that a request waits for the answer of an agent."""

    console_url: str = ""
    """Where users reach the proxy to consoles."""
    console_token_ttl: int = 600

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> ComputeSettings:
        options = conf.compute
        return cls(
            service_down_time=options.service_down_time,
            max_limit=options.max_limit,
            default_zone=options.default_availability_zone,
            internal_zone=options.internal_service_availability_zone,
            quotas={name: conf.quota[name] for name in QUOTAS},
            attach_timeout=options.attach_timeout,
            allow_resize_to_same_host=options.allow_resize_to_same_host,
            force_config_drive=options.force_config_drive,
            reclaim_interval=options.reclaim_interval,
            question_timeout=options.question_timeout,
            console_url=conf.consoles.base_url,
            console_token_ttl=conf.consoles.token_ttl,
        )


@dataclass(frozen=True)
class ComputeService:
    database: Database
    settings: ComputeSettings
    images: Images
    network: Network
    placement: PlacementClient
    wake: Callable[[], None] = lambda: None
    """Tells the conductor in this process, if there is one, that there is work."""
    agents: AskingSide = field(default_factory=NobodyToAsk)
    notifications: Notifications = field(default_factory=NoNotifications)
    scheduler: SchedulerSettings = field(default_factory=SchedulerSettings)
    """What conductors decide by; plans are made by the same."""
    unified_limits: UnifiedLimits | None = None
    """Keystone's, where they hold in the place of ours."""
    checks: Sequence[HealthCheck] = ()
    """Whether what it depends on is well, beside its database."""
    onlooker: Onlooker = field(default_factory=lambda: Onlooker({}))
    """Knows what conductors say of the kinds of operations that they run."""

    @cached_property
    def creations(self) -> Desk[CreationRequest, CreatedServers]:
        """Where requests for servers queue up to be written together."""
        return Desk(self.database, creation.create)

    @cached_property
    def planner(self) -> Planner:
        decider = Decider(
            self.database,
            self.hosts,
            self.aggregates,
            self.placement,
            self.scheduler,
            default_zone=self.settings.default_zone,
        )
        return Planner(decider, self.hosts)

    @cached_property
    def rebalancer(self) -> Rebalancer:
        pictures = CloudPictures(self.database, self.hosts, self.placement)
        return Rebalancer(self.database, pictures, self.planner)

    @cached_property
    def hosts(self) -> Hosts:
        return Hosts(
            self.database,
            self.aggregates,
            down_after=self.settings.service_down_time,
            default_zone=self.settings.default_zone,
        )

    @cached_property
    def statuses(self) -> StatusMirror:
        return StatusMirror(self.database, self.placement)

    @cached_property
    def mirror(self) -> BackgroundMirror:
        return BackgroundMirror(Mirror(self.database, self.placement))

    @cached_property
    def aggregates(self) -> KnownAggregates:
        return KnownAggregates(self.database)

    @cached_property
    def known(self) -> ReferenceCache:
        return ReferenceCache(self.database, self.aggregates, self.limits)

    @cached_property
    def limits(self) -> QuotaLimits:
        return self.unified_limits or StoredLimits(self.settings.quotas)

    def zones(self) -> Zones:
        """As of now."""
        return self.zones_at(self.known.now())

    def zones_at(self, now: ReferenceSnapshot) -> Zones:
        return Zones(now.aggregates().zone_of, self.settings.default_zone, self.settings.internal_zone)
