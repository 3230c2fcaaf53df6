"""Ours on the same PostgreSQL server, filled through its own API: that is one of the measures."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

from bench.placement import load
from bench.placement.load import Job, Meter, Outcome, message
from bench.placement.measures import WrongAnswerError
from bench.placement.nodes import ASK, Node
from tests.support import moorage
from tests.support.postgres import Postgres
from tests.support.processes import Service, wait_until
from tests.support.wire import ConnectionLostError, Wire

NODES_A_REPORT = 2000
CLAIMS_A_REQUEST = 200


def configure(directory: Path, server: Postgres, database: str) -> Path:
    """An empty, synced database and the configuration that names it; as quiet a log as the reference's."""
    quiet = {"log": {"level": "WARNING"}}
    config = moorage.configure(directory, server.create_database(database), quiet)
    moorage.sync_database(config)
    return config


def report(port: int, nodes: list[Node], meter: Meter) -> Outcome:
    """The whole fleet in batches, one after the other, from one client."""
    jobs = list(_report_jobs(nodes))
    outcome = load.run(port, jobs, clients=1, meter=meter)
    if outcome.succeeded != outcome.jobs:
        raise WrongAnswerError(f"reports were refused: {outcome.failures}")
    return outcome


def occupy(port: int, nodes: list[Node]) -> None:
    """The servers that already run when the measures begin."""
    outcome = load.run(port, _occupation_jobs(nodes), clients=4)
    if outcome.succeeded != outcome.jobs:
        raise WrongAnswerError(f"the fleet could not be occupied: {outcome.failures}")


def cold_start(config: Path, timeout: float = 120.0) -> tuple[Service, float]:
    """A service with one worker, and the seconds from its start to its first answer to a search."""
    began = time.perf_counter()
    service = moorage.start(config, workers=1, timeout=timeout)
    wait_until(lambda: _finds_something(service.port), "a first answer", timeout)
    return service, time.perf_counter() - began


def _finds_something(port: int) -> bool:
    try:
        with Wire(port) as wire:
            answer = wire.get("/allocation_candidates?resources=VCPU:1&limit=1")
            return answer.status == 200 and len(answer.json()["allocation_requests"]) == 1
    except (OSError, ConnectionLostError):
        return False


def _report_jobs(nodes: list[Node]) -> Iterator[Job]:
    for batch in _batches(nodes, NODES_A_REPORT):
        providers = [
            {
                "uuid": node.uuid,
                "name": node.name,
                "inventories": {name: inventory.as_body() for name, inventory in node.inventories.items()},
                "traits": node.traits,
                "aggregates": node.aggregates,
            }
            for node in batch
        ]
        yield [message("POST", "/moorage/v1/providers", {"providers": providers})]


def _occupation_jobs(nodes: list[Node]) -> Iterator[Job]:
    for batch in _batches([node for node in nodes if node.occupant], CLAIMS_A_REQUEST):
        claims = {
            node.occupant: {
                "allocations": {node.uuid: {"resources": ASK}},
                "project_id": "bench",
                "user_id": "bench",
                "consumer_generation": None,
                "consumer_type": "INSTANCE",
            }
            for node in batch
        }
        yield [message("POST", "/allocations", claims)]


def _batches(nodes: list[Node], size: int) -> Iterator[list[Node]]:
    rest = iter(nodes)
    while batch := list(itertools.islice(rest, size)):
        yield batch
