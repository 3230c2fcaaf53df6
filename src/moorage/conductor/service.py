"""The conductor of one process, put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from oslo_config import cfg

from moorage.bus.contract import ConductorSide
from moorage.bus.notifications import Notifications, Silence
from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.compute.ports import interfaces
from moorage.conductor.agents.agents import Agents
from moorage.conductor.agents.inbox import Inbox
from moorage.conductor.agents.presence import Presence
from moorage.conductor.agents.vigil import Vigil
from moorage.conductor.chores.catching_up import CatchingUp
from moorage.conductor.chores.mirroring import Mirroring
from moorage.conductor.engine.notices import Notices
from moorage.conductor.engine.runner import Kind, Runner
from moorage.conductor.operations.attach_interface import AttachInterface
from moorage.conductor.operations.build import Build
from moorage.conductor.operations.cold_move import ColdMove
from moorage.conductor.operations.confirm_resize import ConfirmResize
from moorage.conductor.operations.delete import Delete
from moorage.conductor.operations.detach_interface import DetachInterface
from moorage.conductor.operations.evacuate import Evacuate
from moorage.conductor.operations.give_back import GiveBack
from moorage.conductor.operations.live_migrate import LiveMigrate
from moorage.conductor.operations.moving import Tools
from moorage.conductor.operations.plugging_tools import PluggingTools
from moorage.conductor.operations.power import Power
from moorage.conductor.operations.power_update import PowerUpdate
from moorage.conductor.operations.readdress import Readdress
from moorage.conductor.operations.rebuild import Rebuild
from moorage.conductor.operations.revert_resize import RevertResize
from moorage.conductor.operations.unwind import Unwind
from moorage.conductor.placing.both_ends import BothEnds
from moorage.conductor.placing.fitness import Fitness
from moorage.conductor.placing.placing import Placer
from moorage.conductor.ports.plugging import Plugging
from moorage.conductor.ports.port_claims import PortClaims
from moorage.conductor.ports.port_duties import PortDuties
from moorage.conductor.ports.refreshing import Refreshing
from moorage.db.database import Database
from moorage.deciding.decider import Decider
from moorage.deciding.hosts import Hosts
from moorage.ledger import ledger
from moorage.network.contract import Network
from moorage.placement.client.contract import PlacementClient
from moorage.scheduler import options as scheduler_options
from moorage.scheduler.settings import Settings as SchedulerSettings


@dataclass(frozen=True)
class Settings:
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
    plugging: Plugging = field(default_factory=Plugging)
    refresh_interval: int = 0

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> Settings:
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
            plugging=Plugging(conf.network.plug_timeout, conf.network.plug_is_fatal),
            refresh_interval=conf.network.refresh_interval,
        )


class ConductorService:
    def __init__(
        self,
        database: Database,
        settings: Settings,
        bus: ConductorSide,
        network: Network,
        placement: PlacementClient,
        notifications: Notifications | None = None,
    ) -> None:
        self._bus = bus
        self._notifications = notifications or Silence()
        aggregates, zone = KnownAggregates(database), settings.default_zone
        hosts = Hosts(database, aggregates, down_after=settings.service_down_time, default_zone=zone)
        decider = Decider(database, hosts, aggregates, placement, settings.scheduler, default_zone=zone)
        self._placer = Placer(decider, hosts, placement)
        self._duties = PortDuties(database, network, settings.service_down_time)
        fitness = Fitness(hosts, aggregates, placement, settings.scheduler)
        kinds = self._kinds(database, settings, hosts, network, placement, fitness)
        self.runner = Runner(
            database,
            kinds,
            Notices(self._notifications),
            threads=settings.threads,
            batch=settings.batch,
            lease_seconds=settings.lease_seconds,
        )
        self._mirroring = Mirroring(database, placement, settings.mirror_interval)
        self._inbox = Inbox(
            database,
            aggregates,
            self.runner.wake,
            bus.cast,
            self._mirroring.wake,
            Vigil(settings.service_down_time),
        )
        self._catching_up = CatchingUp(database, placement, bus.cast)
        self._refreshing = Refreshing(database, network, settings.refresh_interval)
        self._presence = Presence(database, settings.host, settings.heartbeat_interval)

    def _kinds(
        self,
        database: Database,
        settings: Settings,
        hosts: Hosts,
        network: Network,
        placement: PlacementClient,
        fitness: Fitness,
    ) -> dict[str, Kind]:
        """All operations that there are, by name."""
        agents = Agents(self._bus, settings.ask_again_seconds)
        build = Build(
            database,
            self._placer,
            agents,
            network,
            max_attempts=settings.max_attempts,
            pending_timeout=settings.pending_timeout,
            plugging=settings.plugging,
            duties=self._duties,
        )
        tools = Tools(
            database,
            self._placer,
            agents,
            hosts,
            network,
            BothEnds(placement),
            max_attempts=settings.max_attempts,
            confirm_window=settings.resize_confirm_window,
        )
        plugging = PluggingTools(database, agents, hosts, network, PortClaims(placement))
        return {
            "build": build,
            "delete": Delete(database, agents, hosts, network, placement, self._duties),
            ledger.GIVE_BACK: GiveBack(network, placement),
            "rebuild": Rebuild(agents, hosts, fitness),
            "cold_move": ColdMove(tools),
            "confirm_resize": ConfirmResize(tools),
            "revert_resize": RevertResize(tools),
            "live_migrate": LiveMigrate(tools),
            "evacuate": Evacuate(tools),
            "unwind": Unwind(tools),
            **dict.fromkeys(
                (interfaces.ADD_ADDRESS, interfaces.REMOVE_ADDRESS), Readdress(database, network)
            ),
            interfaces.ATTACH: AttachInterface(plugging),
            interfaces.DETACH: DetachInterface(plugging),
            **{kind: Power(agents, kind) for kind in ("start", "stop", "reboot")},
            **dict.fromkeys(("powered_on", "powered_off"), PowerUpdate(agents, hosts)),
        }

    def start(self) -> None:
        self._presence.start()
        self._duties.division()
        self._bus.receive(self._inbox.on_results, self._inbox.on_heartbeat)
        self.runner.start()
        self._mirroring.start()
        self._catching_up.start()
        self._refreshing.start()

    def stop(self) -> None:
        self._presence.stop()
        self._mirroring.stop()
        self._catching_up.stop()
        self._refreshing.stop()
        self.runner.stop()
        self._bus.close()
        self._notifications.close()
