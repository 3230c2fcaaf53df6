"""Hosts that share a simulated Ironic, with all that they need, each part a process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from moorage.db import engine
from moorage.db.tables.compute import nodes
from moorage.db.tables.placement import providers
from tests.support import postgres, rabbitmq
from tests.support.moorage import PROGRAMS, sync_database
from tests.support.processes import Service, cpu_seconds, free_port, memory_of, port_is_open, start_service
from tests.support.profiles import Settings, ini

REPOSITORY = Path(__file__).resolve().parents[2]
PASS_SECONDS = 30.0
DOWN_SECONDS = 15


class Site:
    def __init__(
        self, directory: Path, database_url: str, broker_url: str, count: int, *, full: bool = False
    ) -> None:
        """With `full`, hosts list all nodes in every pass, and don't only ask for changes."""
        self._directory = directory
        self._database_url = database_url
        self._ironic_port, self._placement_port = free_port(), free_port()
        self.count = count
        self.database: Engine = engine.connect(database_url)
        self.services: list[Service] = []
        self.agents: dict[str, Service] = {}
        self._common: Settings = {
            "DEFAULT": {"transport_url": broker_url},
            "log": {"level": "WARNING"},
            "auth": {"strategy": "none"},
            "placement": {"workers": "1", "port": str(self._placement_port)},
            "compute": {"service_down_time": str(DOWN_SECONDS)},
            "placement_client": {
                "auth_type": "none",
                "endpoint": f"http://127.0.0.1:{self._placement_port}",
            },
            "ironic": {
                "auth_type": "none",
                "endpoint": f"http://127.0.0.1:{self._ironic_port}",
                "full_listing_interval": "0" if full else "600",
            },
        }

    def prepare(self) -> None:
        """All but the agents."""
        config = self._configure("moorage", {"database": {"connection": self._database_url}})
        sync_database(config)
        simulated = [sys.executable, "-m", "bench.fleet.simulated_ironic"]
        self._run([*simulated, str(self._ironic_port), str(self.count)], self._ironic_port)
        self._run([PROGRAMS / "moorage-placement", "--config-file", config], self._placement_port)
        self._run([PROGRAMS / "moorage-conductor", "--config-file", config], 0)

    def start_agent(self, host: str) -> None:
        own = {
            "host": host,
            "driver": "ironic",
            "state_directory": str(self._directory / host),
            "inventory_interval": str(PASS_SECONDS),
            "heartbeat_interval": "2",
        }
        config = self._configure(host, {"agent": own})
        self.agents[host] = self._run([PROGRAMS / "moorage-agent", "--config-file", config], 0)

    def owned(self) -> dict[str, int]:
        """How many nodes each host has."""
        query = sa.select(nodes.c.host, sa.func.count()).group_by(nodes.c.host)
        with self.database.connect() as connection:
            return dict(connection.execute(query).all())

    def providers(self) -> int:
        query = sa.select(sa.func.count()).select_from(providers)
        with self.database.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def rows_written(self) -> int:
        """In all tables but those that hold signs of life."""
        query = sa.text(
            "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_user_tables"
            " WHERE relname NOT IN ('services', 'chores')"
        )
        with self.database.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def cpu(self) -> float:
        return cpu_seconds([pid for service in self.services for pid in service.pids()])

    def agents_cpu(self) -> dict[str, float]:
        return {host: cpu_seconds(agent.pids()) for host, agent in self.agents.items()}

    def memory(self) -> int:
        """Of the largest agent, in bytes."""
        return max(memory_of(agent.pid) for agent in self.agents.values() if agent.process.poll() is None)

    def stop(self) -> None:
        self.database.dispose()
        for service in reversed(self.services):
            service.kill()

    def _configure(self, name: str, more: Settings) -> Path:
        path = self._directory / f"{name}.conf"
        path.write_text(ini({**self._common, **more}))
        return path

    def _run(self, command: list[str | Path], port: int) -> Service:
        log = self._directory / f"{len(self.services)}.log"
        ready = (lambda: port_is_open(port)) if port else (lambda: True)
        environment = {"PYTHONPATH": str(REPOSITORY)}
        service = start_service(command, port, log, environment, ready=ready, timeout=120)
        self.services.append(service)
        return service


@contextmanager
def running(directory: Path, count: int, *, full: bool = False) -> Iterator[Site]:
    with rabbitmq.start() as broker, postgres.start() as server:
        site = Site(directory, server.create_database("moorage"), broker.url, count, full=full)
        try:
            site.prepare()
            yield site
        finally:
            site.stop()
