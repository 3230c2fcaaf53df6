"""The compute side of one process: Compute API, conductor, and the agents of its hosts, joined in memory."""

from __future__ import annotations

import logging
import re
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from oslo_config import cfg

from moorage.agent.journal import Journal
from moorage.agent.service import AgentService, AgentSettings
from moorage.agent.shared_threads import SharedThreads
from moorage.bus import notifications
from moorage.bus.contract import AskingSide
from moorage.bus.local import LocalBus
from moorage.cli.embedded import seeding
from moorage.cli.processes import agent_driver, neighbours
from moorage.cli.processes.agent_driver import ChosenDriver
from moorage.compute.hosts import liveness
from moorage.compute.operations.standing import Onlooker
from moorage.compute.quotas import unified
from moorage.compute_api import wsgi as compute_wsgi
from moorage.compute_api.service import ComputeService, ComputeSettings
from moorage.conductor.chores import chores
from moorage.conductor.operations.register import DECLARED
from moorage.conductor.service import ConductorService, ConductorSettings
from moorage.core import private
from moorage.core.clock import utcnow
from moorage.core.health import HealthCheck
from moorage.db.database import Database
from moorage.drivers import installed
from moorage.drivers.contract import Driver
from moorage.drivers.image_store import ImageStore
from moorage.drivers.plugin import DriverContext
from moorage.http.auth import Wsgi
from moorage.images.api import wsgi as images_wsgi
from moorage.images.catalogue import SEEDS
from moorage.images.connect import connect as connect_images
from moorage.images.local_store import LocalImageStore
from moorage.images.service import ImageService
from moorage.images.store import ApiImageStore
from moorage.ledger import leasing
from moorage.metadata.guests import MetadataGuests
from moorage.metadata.wsgi import MetadataApplication
from moorage.network.connect import connect as connect_network
from moorage.placement.client.contract import PlacementClient
from moorage.scheduler import options as scheduler_options

LOG = logging.getLogger(__name__)

IMAGE_PATH = "/image"
METADATA_PATH = "/metadata"
STREAMED = re.compile(rf"(GET|PUT) {IMAGE_PATH}/v2/images/[^/]+/file")
"""Requests whose body or answer is the data of an image."""
_LONGEST_WAIT_FOR_HOSTS = 10.0
_LOOK_AGAIN = 0.02


class Cloud:
    """What a user boots servers on, in one process."""

    def __init__(
        self, conf: cfg.ConfigOpts, database: Database, placement: PlacementClient, data: Path, hosts: int
    ) -> None:
        self._conf = conf
        self._database = database
        self._data = data
        self._placement = placement
        network = connect_network(conf, self._database)
        self._images = ImageService.from_conf(conf, self._database)
        images = connect_images(conf, self._images.catalogue)
        self._threads = SharedThreads.of_process(conf.agent.threads)
        self._bus = bus = LocalBus(pool=self._threads.beats)
        telling = notifications.from_conf(conf)
        self._conductor = ConductorService(
            self._database,
            ConductorSettings.from_conf(conf),
            bus.conductor_side(),
            network,
            placement,
            images,
            telling,
            bus.asking_side(),
        )
        self._compute = ComputeService(
            database=self._database,
            settings=ComputeSettings.from_conf(conf),
            images=images,
            network=network,
            placement=placement,
            wake=self._conductor.runner.wake,
            agents=bus.asking_side(),
            notifications=telling,
            scheduler=scheduler_options.settings(conf),
            unified_limits=unified.connect(conf),
            checks=[
                *self._conductor.checks(),
                *neighbours.network(conf),
                HealthCheck("hosts", self._trouble_of_hosts),
            ],
            onlooker=Onlooker(DECLARED, conf.conductor.lease_seconds),
        )
        driver = conf.agent.driver
        self._plugin = installed.find(driver)
        self._chosen: dict[str, ChosenDriver] = {}
        self.drivers: dict[str, Driver] = {}
        """By host: that of its newest agent."""
        names = [f"{driver}-{number}" for number in range(1, hosts + 1)]
        self.agents = {host: self.agent(host) for host in names}
        """By host."""
        self.example_image = next(iter(SEEDS))
        """One to begin with."""

    def application(self) -> Wsgi:
        images = images_wsgi.build(self._conf, self._images)
        metadata = MetadataApplication(MetadataGuests(self._database), self._conf.metadata.shared_secret)
        others: dict[str, Wsgi] = {IMAGE_PATH: images, METADATA_PATH: metadata}
        return compute_wsgi.build(self._conf, self._compute, others)

    def asking_side(self) -> AskingSide:
        """For others in this process who ask agents."""
        return self._bus.asking_side()

    def start(self) -> None:
        """Fill what a new cloud needs to be of use, then set everything going."""
        seeding.seed_new_cloud(self._database)
        if not self._database.is_postgresql:  # then the ledger is this process's alone
            self._database.transact(leasing.forget_leases)
            self._database.transact(chores.forget_leases)
            self._images.uploads.forget()
        self._images.start()
        if self._plugin.is_this_machine and self._conf.images.provider != "glance":
            self._add_guest_image()
        self._conductor.start()
        begun = utcnow()
        for agent in self.agents.values():
            agent.start()
        self._wait_for_hosts(begun)

    def _wait_for_hosts(self, since: datetime) -> None:
        """So that who boots a server as soon as we answer finds them. One with trouble holds up nobody."""
        deadline = time.monotonic() + _LONGEST_WAIT_FOR_HOSTS
        while missing := self._unheard(since):
            if time.monotonic() > deadline:
                LOG.warning("no word yet of %d hosts, such as %s", len(missing), missing[0])
                return
            time.sleep(_LOOK_AGAIN)

    def _unheard(self, since: datetime) -> list[str]:
        with self._database.read() as connection:
            heard = liveness.hosts_heard(connection, since)
        return [host for host, agent in self.agents.items() if host not in heard or not agent.has_reported]

    def _add_guest_image(self) -> None:
        """Real servers boot from real images, and what a new catalogue has is for simulated ones."""
        self.example_image = seeding.GUEST
        if seeding.add_guest_image(self._images) is None:
            LOG.warning("there is no image %s: `make guest-image` makes it", seeding.GUEST)

    def stop(self) -> None:
        for agent in self.agents.values():
            agent.stop()
        self._conductor.stop()
        self._images.stop()

    def reload(self, conf: cfg.ConfigOpts) -> None:
        """Have all hosts follow a new configuration; ConfigError if it makes no sense."""
        for host, agent in self.agents.items():
            if self._chosen[host].apply(conf):
                agent.look_soon()

    def _trouble_of_hosts(self) -> str | None:
        """What their agents would say by themselves, if each had a page."""
        troubles = [
            f"{host}: {check.name}: {trouble}"
            for host, agent in self.agents.items()
            for check in agent.checks()
            if isinstance(trouble := check.look(), str)
        ]
        many = f"{len(troubles)} troubles, the first of them " if len(troubles) > 1 else ""
        return f"{many}{troubles[0]}" if troubles else None

    def _store(self) -> ImageStore:
        if self._conf.images.provider == "glance":
            return ApiImageStore(self._conf)
        return LocalImageStore(self._images.catalogue, self._images.files, self._images.uploads)

    def agent(self, host: str) -> AgentService:
        """One life of a host's agent: what it has, and what it has to do, outlives it in its directory."""
        directory = self._data / "agents" / host
        for each in (directory.parent, directory):
            private.directory(each)
        context = DriverContext(host, directory, self._conf, self._placement, self._store())
        chosen = agent_driver.choose(self._plugin, context)
        self._chosen[host] = chosen
        self.drivers[host] = chosen.driver
        settings = replace(
            AgentSettings.from_conf(self._conf), host=host, sweep_grace=chosen.loaded.sweep_grace
        )
        journal = Journal(directory / "journal.sqlite")
        side = self._bus.agent_side()
        return AgentService(
            settings,
            chosen.driver,
            side,
            self._placement,
            journal,
            chosen.ownership,
            shared=self._threads,
        )
