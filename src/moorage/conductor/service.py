"""The conductor of one process, put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from oslo_config import cfg

from moorage.bus.asking import NobodyToAsk
from moorage.bus.contract import AskingSide, ConductorSide
from moorage.bus.host_queues import HostQueues
from moorage.bus.notifications import NoNotifications, Notifications
from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.compute.audits.audit import Repair
from moorage.compute.operations.standing import Onlooker
from moorage.conductor.agents.agents import Agents
from moorage.conductor.agents.inbox import Inbox
from moorage.conductor.agents.listening import ListeningPeriod
from moorage.conductor.agents.presence import Presence
from moorage.conductor.agents.stamping import StampingConductorSide
from moorage.conductor.auditing import register
from moorage.conductor.auditing.contract import AuditTools
from moorage.conductor.chores.audit_chore import AuditChore
from moorage.conductor.chores.backlog_worker import BacklogWorker
from moorage.conductor.chores.draining import Draining
from moorage.conductor.chores.era_watch import EraWatch
from moorage.conductor.chores.ledger_watch import LedgerWatch
from moorage.conductor.chores.mirroring import Mirroring
from moorage.conductor.chores.overlap_watch import OverlapWatch
from moorage.conductor.chores.purging import Purging
from moorage.conductor.chores.queue_watch import QueueWatch
from moorage.conductor.engine.operation_notifications import OperationNotifications
from moorage.conductor.engine.runner import Runner
from moorage.conductor.operations.register import DECLARED, KINDS
from moorage.conductor.operations.tools import Tools
from moorage.conductor.placing.both_ends import BothEnds
from moorage.conductor.placing.fitness import Fitness
from moorage.conductor.placing.placing import Placer
from moorage.conductor.ports.late_ports import LatePorts
from moorage.conductor.ports.plugging import PluggingTimeout
from moorage.conductor.ports.port_claims import PortClaims
from moorage.conductor.ports.port_duties import PortDuties
from moorage.conductor.ports.refreshing import Refreshing
from moorage.core.health import HealthCheck
from moorage.db.database import Database
from moorage.db.era import KnownEra
from moorage.deciding.decider import Decider
from moorage.deciding.hosts import Hosts
from moorage.images.contract import Images
from moorage.network.contract import Network
from moorage.placement.client.contract import PlacementClient
from moorage.scheduler import options as scheduler_options
from moorage.scheduler.settings import SchedulerSettings


@dataclass(frozen=True)
class ConductorSettings:
    max_attempts: int
    pending_timeout: int
    resize_confirm_window: int
    scheduler: SchedulerSettings
    threads: int
    batch: int
    lease_seconds: int
    ask_again_seconds: float
    service_down_time: int
    default_zone: str
    host: str
    heartbeat_interval: float
    mirror_interval: int = 0
    plugging: PluggingTimeout = field(default_factory=PluggingTimeout)
    refresh_interval: int = 0
    shelved_offload_time: int = 0
    keep_deleted: int = 0
    audit_interval: int = 0
    audit_grace: int = 60
    audit_repair: Repair = Repair.NOTHING

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> ConductorSettings:
        return cls(
            max_attempts=conf.scheduler.max_attempts,
            pending_timeout=conf.scheduler.pending_timeout,
            resize_confirm_window=conf.conductor.resize_confirm_window,
            scheduler=scheduler_options.settings(conf),
            threads=conf.conductor.threads,
            batch=conf.conductor.batch,
            lease_seconds=conf.conductor.lease_seconds,
            ask_again_seconds=conf.conductor.ask_again_seconds,
            service_down_time=conf.compute.service_down_time,
            default_zone=conf.compute.default_availability_zone,
            host=conf.conductor.host,
            heartbeat_interval=conf.conductor.heartbeat_interval,
            mirror_interval=conf.compute.mirror_interval,
            plugging=PluggingTimeout(conf.network.plug_timeout, conf.network.plug_is_fatal),
            refresh_interval=conf.network.refresh_interval,
            shelved_offload_time=conf.compute.shelved_offload_time,
            keep_deleted=conf.compute.keep_deleted,
            audit_interval=conf.conductor.audit_interval,
            audit_grace=conf.conductor.audit_grace,
            audit_repair=Repair(conf.conductor.repair),
        )


class Chore(Protocol):
    """What a conductor does beside its operations, from time to time."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class ConductorService:
    def __init__(
        self,
        database: Database,
        settings: ConductorSettings,
        bus: ConductorSide,
        network: Network,
        placement: PlacementClient,
        images: Images,
        notifications: Notifications | None = None,
        agents: AskingSide | None = None,
        queues: HostQueues | None = None,
    ) -> None:
        era = KnownEra(database)
        self._bus = bus = StampingConductorSide(bus, era)
        self._notifications = notifications or NoNotifications()
        aggregates, zone = KnownAggregates(database), settings.default_zone
        hosts = Hosts(database, aggregates, down_after=settings.service_down_time, default_zone=zone)
        decider = Decider(database, hosts, aggregates, placement, settings.scheduler, default_zone=zone)
        self._duties = PortDuties(database, network, settings.service_down_time)
        fitness = Fitness(hosts, aggregates, placement, settings.scheduler)
        asking = agents or NobodyToAsk()
        checks = register.make(
            AuditTools(database, placement, network, hosts, asking, bus.cast, settings.scheduler, queues)
        )
        tools = Tools(
            database,
            placement,
            network,
            images,
            Agents(bus, settings.ask_again_seconds),
            hosts,
            Placer(decider, hosts, placement),
            BothEnds(placement),
            fitness,
            PortClaims(placement),
            self._duties,
            settings.plugging,
            max_attempts=settings.max_attempts,
            pending_timeout=settings.pending_timeout,
            confirm_window=settings.resize_confirm_window,
            shelved_offload_time=settings.shelved_offload_time,
            checks=checks,
        )
        self.runner = Runner(
            database,
            {kind.name: kind(tools) for kind in KINDS},
            OperationNotifications(self._notifications),
            threads=settings.threads,
            batch=settings.batch,
            lease_seconds=settings.lease_seconds,
            era=era,
        )
        mirroring = Mirroring(database, placement, settings.mirror_interval)
        self._inbox = Inbox(
            database,
            aggregates,
            self.runner.wake,
            bus.cast,
            mirroring.wake,
            ListeningPeriod(settings.service_down_time),
            era,
        )
        down, wake = settings.service_down_time, self.runner.wake
        self._chores: list[Chore] = [
            mirroring,
            BacklogWorker(database, placement, bus.cast),
            OverlapWatch(database, down),
            EraWatch(database),
            LedgerWatch(database, Onlooker(DECLARED, settings.lease_seconds), down),
            *([] if queues is None else [QueueWatch(queues)]),
            Draining(database, down, wake, era),
            Refreshing(database, network, settings.refresh_interval),
            LatePorts(database, network),
            AuditChore(
                database,
                checks,
                wake,
                interval=settings.audit_interval,
                grace=settings.audit_grace,
                repair=settings.audit_repair,
            ),
            Purging(database, settings.keep_deleted),
        ]
        self._presence = Presence(database, settings.host, settings.heartbeat_interval)

    def checks(self) -> list[HealthCheck]:
        """Whether it does what only it can do."""
        return [*self.runner.checks(), HealthCheck("heartbeat", self._presence.pulse.trouble)]

    def start(self) -> None:
        self._presence.start()
        self._duties.division()
        self._bus.receive(self._inbox.on_results, self._inbox.on_heartbeat)
        self.runner.start()
        for chore in self._chores:
            chore.start()

    def stop(self) -> None:
        """What is at work first: until that has ended, all else goes on."""
        self.runner.stop()
        self._presence.stop()
        for chore in self._chores:
            chore.stop()
        self._bus.close()
        self._notifications.close()
