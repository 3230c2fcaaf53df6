"""The agent of one host: heartbeats, inventory, and the tasks of the host's servers."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
from oslo_config import cfg
from prometheus_client import Counter, Gauge

from moorage.agent.executor import Executor
from moorage.agent.journal import Journal
from moorage.agent.ownership import Ownership, OwnershipUpdate
from moorage.agent.ports import Ports
from moorage.agent.questions import Questions
from moorage.agent.shared_threads import SharedThreads
from moorage.agent.sharing import Sharing
from moorage.agent.start_permits import PermitAnswer, StartPermits
from moorage.agent.sweeping import Sweeping
from moorage.agent.tracker import Tracker
from moorage.bus.contract import (
    ABORT,
    AVOID,
    ERA,
    EXPIRE_IMAGES,
    HURRY,
    NEWEST_OPERATION,
    OWN,
    PERMIT,
    SAY_AGAIN,
    SET_PEERS,
    SET_RATIOS,
    SET_STATUS,
    SWEEP,
    AgentSide,
    BusError,
    Heartbeat,
    HeldMachine,
    NodeFacts,
    ObservedServer,
    ReportedFailure,
    Task,
)
from moorage.bus.versions import NEWEST
from moorage.core.clock import utcnow
from moorage.core.health import HealthCheck, Pulse
from moorage.core.periodic import Periodic
from moorage.drivers import capabilities, parts
from moorage.drivers.contract import NO_STATE, Driver, DriverError
from moorage.drivers.image_caching import ImageCaching
from moorage.drivers.machine_failures import KNOWN, POLICY, AvoidedMachines, FailureTelling
from moorage.placement.client.contract import PlacementClient
from moorage.scheduler.aggregates import RATIOS

LOG = logging.getLogger(__name__)
SILENT = Counter("moorage_agent_heartbeat_failures_total", "Heartbeats that the bus did not take.")
VOID = Counter("moorage_agent_void_tasks_total", "Tasks from before a restore of the database, ignored.")
WAITING = Gauge(
    "moorage_agent_tasks_waiting", "Tasks that were taken on and that nobody is at yet.", ["host"]
)

_ASK_AGAIN, _ASK_AGAIN_AT_LAST = 0.1, 2.0
"""Seconds after which a question is asked again: at first the conductor may only have to write something."""
_ABOUT_THE_HOST = (
    SET_STATUS,
    SET_RATIOS,
    SET_PEERS,
    OWN,
    SAY_AGAIN,
    SWEEP,
    EXPIRE_IMAGES,
    PERMIT,
    AVOID,
    ABORT,
    HURRY,
)
"""Tasks that are not done on a server, in its turn, and have no result."""


@dataclass(frozen=True)
class AgentSettings:
    host: str
    cell: str = "default"
    driver: str = "fake"
    heartbeat_interval: float = 10.0
    inventory_interval: float = 60.0
    full_report_interval: float = 600.0
    """How often everything is said again, changed or not: what was lost on the way heals by itself."""
    remember_seconds: float = 86_400.0
    sweep_grace: float = 120.0
    """How long a machine is held for a server before we ask whether it should be."""
    threads: int = 32
    version: int = NEWEST
    """What conductors take this agent for."""
    ratios: Mapping[str, float] = field(default_factory=dict)
    """Allocation ratios by resource class that the operator chose for this host."""

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> AgentSettings:
        options = conf.agent
        return cls(
            host=options.host,
            cell=options.cell,
            driver=options.driver,
            heartbeat_interval=options.heartbeat_interval,
            inventory_interval=options.inventory_interval,
            full_report_interval=options.full_report_interval,
            remember_seconds=options.remember_seconds,
            threads=options.threads,
            ratios={
                resource_class: options[name]
                for resource_class, name in RATIOS.items()
                if options[name] is not None
            },
        )


class AgentService:
    """Owns no database: what it knows comes from its driver, the bus and its own journal."""

    def __init__(
        self,
        settings: AgentSettings,
        driver: Driver,
        bus: AgentSide,
        placement: PlacementClient,
        journal: Journal,
        ownership: Ownership | None = None,
        ports: Ports | None = None,
        shared: SharedThreads | None = None,
    ) -> None:
        """With `ownership`, the driver's nodes are shared with other hosts, and it says which are ours; with
        `ports`, conductors may leave those of servers to us; with `shared`, this process has other hosts."""
        shared = shared or SharedThreads.of_process(settings.threads)
        self._settings = settings
        self._driver = driver
        self._abilities = parts.of(driver)
        self._bus = bus
        self._journal = journal
        self._permits: StartPermits | None = None
        self._questions_to_ask = Periodic(
            "permits", math.inf, self._ask_to_start, _ASK_AGAIN, _ASK_AGAIN_AT_LAST, shared.beats
        )
        if isinstance(driver, parts.Fenced):
            self._permits = StartPermits(self._questions_to_ask.wake)
            driver.start_by_permit(self._permits.of)
        self._executor = Executor(
            driver, journal, bus.report, settings.threads, ports, shared, self._permits, settings.host
        )
        self._questions = Questions(driver)
        self._facts: dict[str, Any] = {
            "network": ports is not None and ports.have_network,
            "driver": settings.driver,
            "cell": settings.cell,
            "started_at": utcnow().isoformat(),
        }
        self._ownership = ownership
        self._sweeping: Sweeping | None = None
        if ownership is not None:
            again = settings.full_report_interval
            self._sweeping = Sweeping(ownership.driver, self._executor.busy, settings.sweep_grace, again)
        self._tracker = Tracker(placement, journal)
        self._sharing = Sharing(placement, journal)
        self._tracker.disabled = journal.disabled
        self._use_ratios(journal.ratios)
        self._machine_failures = driver.machine_failures if isinstance(driver, FailureTelling) else None
        self._avoided = AvoidedMachines()
        self._newest_operation = 0
        self._driver_trouble: str | None = None
        """Why it could not be asked, the last time that it was."""
        self._taken = Pulse("no heartbeat was taken", longest=3 * settings.heartbeat_interval)
        self._said_nodes: list[NodeFacts] | None = None
        self._said_power: dict[str, int] = {}
        self._say_everything = True
        self._said_all_at = time.monotonic()
        self._forgotten = threading.Event()
        """Set while somebody waits for us to say everything again."""
        self.has_reported = False
        """Placement knows what the host has."""
        pool, often, seldom = shared.beats, settings.heartbeat_interval, settings.inventory_interval
        self._heartbeats = Periodic("heartbeat", often, self._beat, pool=pool)
        self._inventory = Periodic("inventory", seldom, self._report_inventory, pool=pool)
        self._looks = Periodic("look", seldom, self._look, pool=pool)

    def start(self) -> None:
        """Go on with interrupted work, then be there for new work, then say so."""
        self._questions_to_ask.start()
        self._executor.start()
        self._bus.receive(self._settings.host, self._on_tasks)
        self._bus.answer(self._settings.host, self._questions.answer)
        self._inventory.start()
        self._heartbeats.start()
        if self._ownership is not None:
            self._looks.start()
        if isinstance(self._driver, parts.Watchful):
            self._driver.watch(self._on_change)
        LOG.info("agent of host %s is running", self._settings.host)

    def checks(self) -> list[HealthCheck]:
        """Whether the host can do its work, and is heard."""
        return [
            HealthCheck("driver", lambda: self._driver_trouble),
            HealthCheck("journal", self._journal.trouble),
            HealthCheck("heartbeat", self._taken.trouble),
        ]

    def stop(self) -> None:
        """End soon; what is at work goes on after the next start."""
        self._heartbeats.stop()
        self._inventory.stop()
        self._looks.stop()
        if self._permits is not None:
            self._permits.close()
        self._questions_to_ask.stop()
        self._driver.close()
        self._executor.stop()
        self._bus.close()
        self._journal.close()

    def _on_tasks(self, sent: list[Task]) -> None:
        era = max(task.era for task in sent)
        if era > self._journal.era:
            self._begin_era(era)
        tasks = [task for task in sent if task.era in (0, self._journal.era)]
        if len(tasks) < len(sent):
            VOID.inc(len(sent) - len(tasks))
            LOG.warning("%d tasks are ignored: the database was restored since", len(sent) - len(tasks))
        for task in tasks:
            if task.kind == SET_STATUS:
                self._set_disabled(bool(task.payload.get("disabled", False)))
            elif task.kind == SET_RATIOS:
                self._set_ratios(msgspec.convert(task.payload.get("ratios", {}), dict[str, float]))
            elif task.kind == SAY_AGAIN:
                self._say_again()
            elif task.kind == SET_PEERS:
                self._meet(msgspec.convert(task.payload.get("peers", []), list[str]))
            elif task.kind == OWN:
                self._learn_owned(msgspec.convert(task.payload, OwnershipUpdate))
            elif task.kind == SWEEP:
                self._sweep(msgspec.convert(task.payload.get("held", []), list[HeldMachine]))
            elif task.kind == EXPIRE_IMAGES:
                self._expire_images()
            elif task.kind == AVOID:
                self._avoid(msgspec.convert(task.payload, AvoidedMachines))
            elif task.kind == PERMIT and self._permits is not None:
                self._permits.learn(msgspec.convert(task.payload, PermitAnswer))
            elif task.kind in (ABORT, HURRY):
                self._executor.signal(task)
        work = [task for task in tasks if task.kind not in _ABOUT_THE_HOST]
        if work:
            self._executor.submit(work)

    def _begin_era(self, era: int) -> None:
        """The database was restored: what we know of its numbers says nothing, and it does not know what we
        have said since its backup."""
        LOG.warning("the database was restored: a new era, %d, begins, and everything is said again", era)
        self._journal.begin_era(era)
        self._say_again()

    def _expire_images(self) -> None:
        """Late, it removes what need not be there then."""
        if isinstance(self._driver, ImageCaching):
            self._driver.expire_images()

    def _set_ratios(self, ratios: dict[str, float]) -> None:
        self._journal.ratios = ratios
        self._use_ratios(ratios)
        self._inventory.wake()
        self._heartbeats.wake()

    def _use_ratios(self, ratios: dict[str, float]) -> None:
        """What the host's aggregates say wins over what was configured for the host alone."""
        self._facts["ratios"] = ratios
        self._tracker.ratios = {**self._settings.ratios, **ratios}

    def _set_disabled(self, disabled: bool) -> None:
        self._journal.disabled = disabled
        self._tracker.disabled = disabled
        self._inventory.wake()
        self._heartbeats.wake()

    def _on_change(self, server_uuid: str, power: int) -> None:
        """A hint of the driver's: look at once, unless what we would see is a task's doing."""
        if server_uuid not in self._executor.busy() and self._said_power.get(server_uuid) != power:
            self._heartbeats.wake()

    def _say_again(self) -> None:
        self._forgotten.set()
        self._heartbeats.wake()

    def look_soon(self) -> None:
        """Something changed in what this host serves."""
        self._looks.wake()
        self._heartbeats.wake()

    def _look(self) -> bool:
        """See what nodes there are, and bid for those that should be ours."""
        assert self._ownership is not None
        assert self._sweeping is not None
        looked = self._follow(self._ownership.look)
        self._sweeping.look()
        return looked

    def _follow(self, look: Callable[[], list[str]]) -> bool:
        """Look, then say what follows from it."""
        try:
            gone = look()
        except DriverError as error:
            LOG.warning("the nodes can't be looked at, and stay as they were: %s", error)
            return False
        for uuid in gone:
            LOG.info("node %s is no more", uuid)
        self._heartbeats.wake()
        self._inventory.wake()
        return True

    def _meet(self, peers: list[str]) -> None:
        if self._ownership is not None and self._ownership.meet(peers):
            self._follow(self._ownership.propose)
            self.look_soon()

    def _learn_owned(self, word: OwnershipUpdate) -> None:
        if self._ownership is not None:
            self._tracker.inherit(word.traits)
            self._ownership.learn(word)
            self._inventory.wake()

    def _sweep(self, told: list[HeldMachine]) -> None:
        if self._sweeping is not None:
            for held in self._sweeping.take(told):
                self._executor.aside(partial(self._sweeping.sweep, held))

    def _report_inventory(self) -> bool:
        nodes = self._driver.nodes()
        settled = self._tracker.report(nodes) and self._sharing.settle(nodes)
        self.has_reported = self.has_reported or settled
        return settled

    def _ask_to_start(self) -> bool:
        """In a heartbeat of its own, which looks at nothing: who asks waits."""
        question = None if self._permits is None else self._permits.question()
        if question is None:
            return True
        try:
            self._bus.beat(
                Heartbeat(self._settings.host, self._settings.version, self._said(), starts=question)
            )
        except BusError as error:
            SILENT.inc()
            LOG.warning("it can't be asked whether servers may start: %s", error)
        return False

    def _said(self) -> dict[str, Any]:
        """What every heartbeat says of the host."""
        return {
            **self._facts,
            **self._terms(),
            **self._avoiding(),
            "disabled": self._tracker.disabled,
            ERA: self._journal.era,
            NEWEST_OPERATION: self._newest_operation,
        }

    def _beat(self) -> bool:
        """Say that we live, and what changed. What could not be said is said next time."""
        if self._forgotten.is_set() or self._is_time_to_say_everything():
            self._say_everything_again()
        if self._ownership is not None:
            self._ownership.about_to_beat()
        nodes = None if self._ownership is not None else self._node_facts() or self._said_nodes
        newest = self._journal.newest()  # before we look: then what we see is not older
        self._newest_operation = max((operation for operation, _ in newest.values()), default=0)
        WAITING.labels(self._settings.host).set(self._executor.waiting())
        busy = self._executor.busy()
        found = self._found(busy)
        bid = None if self._ownership is None else self._ownership.bid()
        failed = [] if self._machine_failures is None else self._machine_failures.failures()
        known = {uuid: power for uuid, power in self._said_power.items() if uuid not in busy}
        heartbeat = Heartbeat(
            host=self._settings.host,
            version=self._settings.version,
            facts=self._said(),
            nodes=nodes if nodes != self._said_nodes else None,
            observed={
                uuid: ObservedServer(number, *newest.get(uuid, (0, 0)))
                for uuid, number in _news(
                    known, known if found is None else found, everything=self._say_everything
                ).items()
            },
            bid=bid,
            digest=self._ownership.digest() if self._ownership is not None and bid is None else None,
            progress=self._driver.progress(),
            held_machines=[] if self._sweeping is None else self._sweeping.held_machines(),
            failures=[ReportedFailure(**msgspec.structs.asdict(failure)) for failure in failed],
            mended=[] if self._machine_failures is None else sorted(self._machine_failures.mended()),
            lost=[] if self._ownership is None else sorted(self._ownership.driver.lost_servers()),
        )
        try:
            self._bus.beat(heartbeat)
        except BusError as error:
            SILENT.inc()
            LOG.warning("no heartbeat could be sent: %s", error)
            # Meanwhile conductors may take this host for dead, and decide without it.
            self._said_nodes, self._say_everything = None, True
            self._ask_for_everything()
            return False  # again, soon: there may have been no conductor yet
        self._taken.beat()
        if self._machine_failures is not None:
            self._machine_failures.told(failed)
        if self._ownership is not None:
            self._ownership.has_beaten()
        self._said_nodes = nodes
        if found is not None:
            at_work = {uuid: power for uuid, power in self._said_power.items() if uuid in busy}
            self._said_power, self._say_everything = at_work | found, False
        if self._ownership is not None and self._ownership.has_more:
            self._heartbeats.wake()
        return True

    def _found(self, busy: set[str]) -> dict[str, int] | None:
        """Power states of the servers that nothing is done to; None if nobody can tell now. We live all the
        same: who took us for dead would start our guests elsewhere, while they run here."""
        try:
            servers = self._driver.servers()
            self._driver_trouble = None
            return {uuid: power for uuid, power in servers.items() if uuid not in busy}
        except DriverError as error:
            self._driver_trouble = str(error)
            LOG.warning("the servers can't be looked at, and stay as they were: %s", error)
            return None

    def _node_facts(self) -> list[NodeFacts] | None:
        try:
            nodes = self._driver.nodes()
        except DriverError as error:
            LOG.warning("the nodes can't be looked at, and stay as they were: %s", error)
            return None
        return [
            NodeFacts(node.uuid, node.name, node.hypervisor_type, capabilities.facts(self._abilities, node))
            for node in nodes
        ]

    def _terms(self) -> dict[str, Any]:
        """What conductors find our peers by, and whom we know already."""
        return {} if self._ownership is None else self._ownership.facts()

    def _avoiding(self) -> dict[str, Any]:
        """Which machines shall be kept out, and what we were told of such."""
        if self._machine_failures is None:
            return {}
        policy = msgspec.to_builtins(self._machine_failures.policy())
        return {POLICY: policy, KNOWN: self._avoided.digest()}

    def _avoid(self, machines: AvoidedMachines) -> None:
        if self._machine_failures is not None:
            self._avoided = machines
            self._machine_failures.avoid(machines)
            self._inventory.wake()
            self._heartbeats.wake()

    def _ask_for_everything(self) -> None:
        if self._ownership is not None:
            self._ownership.ask_for_everything()

    def _is_time_to_say_everything(self) -> bool:
        return time.monotonic() - self._said_all_at > self._settings.full_report_interval

    def _say_everything_again(self) -> None:
        self._forgotten.clear()
        self._said_nodes, self._say_everything = None, True
        self._said_all_at = time.monotonic()
        self._ask_for_everything()
        self._tracker.forget()
        self._sharing.forget()
        self._inventory.wake()
        self._journal.forget(self._settings.remember_seconds)


def _news(before: dict[str, int], now: dict[str, int], *, everything: bool) -> dict[str, int]:
    gone = {uuid: NO_STATE for uuid in before if uuid not in now}
    return gone | {uuid: power for uuid, power in now.items() if everything or before.get(uuid) != power}
