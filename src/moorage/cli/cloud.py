"""The compute side of one process: Compute API, conductor, and the agents of its hosts, joined in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from oslo_config import cfg

from moorage.agent.journal import Journal
from moorage.agent.service import AgentService, AgentSettings
from moorage.agent.shared_threads import SharedThreads
from moorage.bus import notifications
from moorage.bus.local import LocalBus
from moorage.cli import agent_driver, seeding
from moorage.compute_api import wsgi as compute_wsgi
from moorage.compute_api.service import ComputeService, ComputeSettings
from moorage.conductor.service import ConductorService, ConductorSettings
from moorage.core import private
from moorage.db.database import Database
from moorage.drivers import installed
from moorage.drivers.plugin import DriverContext
from moorage.http.auth import Wsgi
from moorage.images import wsgi as images_wsgi
from moorage.images.catalogue import Catalogue
from moorage.images.connect import connect as connect_images
from moorage.ledger import leasing
from moorage.network.connect import connect as connect_network
from moorage.placement.client.contract import PlacementClient
from moorage.scheduler import options as scheduler_options

IMAGE_PATH = "/image"


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
        self._catalogue = Catalogue(self._database)
        self._threads = SharedThreads.of_process(conf.agent.threads)
        self._bus = bus = LocalBus(pool=self._threads.beats)
        self._conductor = ConductorService(
            self._database,
            ConductorSettings.from_conf(conf),
            bus.conductor_side(),
            network,
            placement,
            notifications.from_conf(conf),
        )
        self._compute = ComputeService(
            database=self._database,
            settings=ComputeSettings.from_conf(conf),
            images=connect_images(conf, self._database),
            network=network,
            placement=placement,
            wake=self._conductor.runner.wake,
            scheduler=scheduler_options.settings(conf),
        )
        driver = conf.agent.driver
        self._plugin = installed.find(driver)
        names = [f"{driver}-{number}" for number in range(1, hosts + 1)]
        self.agents = {host: self.agent(host) for host in names}
        """By host."""

    def application(self) -> Wsgi:
        images = images_wsgi.build(self._conf, self._catalogue)
        return compute_wsgi.build(self._conf, self._compute, {IMAGE_PATH: images})

    def start(self) -> None:
        """Fill what a new cloud needs to be of use, then set everything going."""
        seeding.seed_new_cloud(self._database)
        if not self._database.is_postgresql:  # then the ledger is this process's alone
            self._database.transact(leasing.forget_leases)
        self._conductor.start()
        for agent in self.agents.values():
            agent.start()

    def stop(self) -> None:
        for agent in self.agents.values():
            agent.stop()
        self._conductor.stop()

    def agent(self, host: str) -> AgentService:
        """One life of a host's agent: what it has, and what it has to do, outlives it in its directory."""
        directory = self._data / "agents" / host
        for each in (directory.parent, directory):
            private.directory(each)
        context = DriverContext(host, directory, self._conf, self._placement)
        chosen = agent_driver.choose(self._plugin, context)
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
