"""A cloud with many hosts in a few aggregates, of which Placement knows the nodes and nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.aggregates import aggregates
from moorage.core.clock import utcnow
from moorage.db import engine
from moorage.db.database import Database
from moorage.db.tables.aggregates import aggregate_hosts
from moorage.db.tables.compute import nodes, services
from moorage.placement.client.contract import ReportedProvider
from moorage.placement.client.http import HttpPlacement
from moorage.placement.client.transport import SessionTransport
from tests.support import postgres
from tests.support.moorage import PROGRAMS, configure, start, sync_database
from tests.support.processes import Service, cpu_seconds, free_port, port_is_open, process_tree, start_service

AGGREGATES = 20
MEMBERSHIPS = 2
"""Aggregates that each host is in: say, a zone and a kind of hardware."""


@dataclass(frozen=True)
class Size:
    hosts: int
    nodes_each: int = 1

    @classmethod
    def parse(cls, text: str) -> Size:
        """`1000`, or `10000x10` for hosts with ten nodes each."""
        hosts, _, each = text.partition("x")
        return cls(int(hosts), int(each or 1))

    @property
    def nodes(self) -> int:
        return self.hosts * self.nodes_each


@dataclass(frozen=True)
class Site:
    size: Size
    config: Path
    api: Service
    placement: Service
    database_pid: int

    def cpu_seconds(self) -> float:
        """Of the services and the database."""
        return cpu_seconds([*process_tree(self.database_pid), *self.api.pids(), *self.placement.pids()])


@contextmanager
def standing(directory: Path, size: Size) -> Iterator[Site]:
    with postgres.start() as server:
        url = server.create_database("moorage")
        port = free_port()
        endpoint = f"http://127.0.0.1:{port}"
        extra = {"placement_client": {"auth_type": "none", "endpoint": endpoint}, "compute": {"workers": "1"}}
        config = configure(directory, url, extra)
        sync_database(config)
        with start(config, workers=1, port=port) as placement:
            _fill_placement(endpoint, size)
            connected = engine.connect(url)
            Database(connected).transact(lambda connection: _fill(connection, size))
            connected.dispose()
            with _start_api(config) as api:
                yield Site(size, config, api, placement, server.pid)


def _start_api(config: Path) -> Service:
    port = free_port()
    command: list[str | Path] = [PROGRAMS / "moorage-api", "--config-file", config, "--port", str(port)]
    log = config.with_name("api.log")
    return start_service(command, port, log, ready=lambda: port_is_open(port), timeout=120)


def host_name(number: int) -> str:
    return f"host-{number:06}"


def _node_uuid(host: int, number: int) -> str:
    return str(uuid.UUID(int=(host << 32) | number | (1 << 100)))


def _each_node(size: Size) -> Iterator[tuple[int, str, str]]:
    """Number of the host, UUID and name of the node."""
    for host in range(size.hosts):
        for number in range(size.nodes_each):
            name = host_name(host) if size.nodes_each == 1 else f"{host_name(host)}-{number:04}"
            yield host, _node_uuid(host, number), name


def _fill_placement(endpoint: str, size: Size) -> None:
    inventories: dict[str, dict[str, Any]] = {"VCPU": {"total": 64}}
    with requests.Session() as session:
        session.trust_env = False
        session.headers["X-Auth-Token"] = "admin"
        client = HttpPlacement(SessionTransport(session, endpoint))
        client.report([ReportedProvider(uuid_, name, inventories) for _, uuid_, name in _each_node(size)])


def _fill(connection: Connection, size: Size) -> None:
    """The Compute side's rows, as agents and operators would have brought them about."""
    seen = {"binary": "nova-compute", "version": 1, "facts": {}, "seen_at": utcnow()}
    connection.execute(
        sa.insert(services),
        [{"uuid": str(uuid.uuid4()), "host": host_name(number), **seen} for number in range(size.hosts)],
    )
    connection.execute(
        sa.insert(nodes),
        [
            {"uuid": uuid_, "name": name, "host": host_name(host), "hypervisor_type": "fake", "facts": {}}
            for host, uuid_, name in _each_node(size)
        ],
    )
    ids = [aggregates.create(connection, f"aggregate-{number}", None).id for number in range(AGGREGATES)]
    connection.execute(
        sa.insert(aggregate_hosts),
        [
            {"aggregate_id": ids[(host + step * (AGGREGATES // MEMBERSHIPS)) % AGGREGATES], "host": name}
            for host, name in ((number, host_name(number)) for number in range(size.hosts))
            for step in range(MEMBERSHIPS)
        ],
    )
