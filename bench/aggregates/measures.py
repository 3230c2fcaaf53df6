"""What is measured: the command as an operator runs it, and hosts that are added one by one."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import time
from dataclasses import asdict, dataclass, field

import requests

from bench.aggregates.site import MEMBERSHIPS, Site, host_name
from tests.support.moorage import PROGRAMS


class WrongAnswerError(Exception):
    """A command that was fast and wrong has no figure."""


@dataclass(frozen=True)
class Figure:
    hosts: int
    nodes: int
    measure: str
    seconds: float
    cpu_seconds: float
    """Of the command, the services and the database together, which a busy machine falsifies less."""
    load: float = field(default_factory=lambda: os.getloadavg()[0])

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def first_and_no_change(site: Site) -> list[Figure]:
    """Everything is missing, then nothing is; before it, what any command takes to start."""
    pairs = site.size.nodes * MEMBERSHIPS
    return [
        _manage(site, "a command that only starts", "db", "version")[0],
        _sync(site, "first run", {"added": pairs, "removed": 0, "unchanged": 0}),
        _sync(site, "no-change run", {"added": 0, "removed": 0, "unchanged": pairs}),
    ]


def _sync(site: Site, measure: str, expected: dict[str, int]) -> Figure:
    figure, output = _manage(site, measure, "placement", "sync_aggregates", "--json")
    told = json.loads(output)
    if {name: told[name] for name in expected} != expected:
        raise WrongAnswerError(f"{output[:500]} instead of {expected}")
    return figure


def _manage(site: Site, measure: str, *arguments: str) -> tuple[Figure, str]:
    command = [str(PROGRAMS / "moorage-manage"), "--config-file", str(site.config), *arguments]
    before = site.cpu_seconds() + _children()
    begun = time.perf_counter()
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begun
    used = site.cpu_seconds() + _children() - before
    if ran.returncode != 0:
        raise WrongAnswerError(f"exit code {ran.returncode}: {ran.stderr[-2000:]}")
    return Figure(site.size.hosts, site.size.nodes, measure, seconds, used), ran.stdout


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def add_host(site: Site, count: int) -> Figure:
    """Add hosts to one more aggregate, one request after the other; the median of a request."""
    with requests.Session() as session:
        session.trust_env = False
        session.headers["X-Auth-Token"] = "admin"
        root = f"{site.api.url}/v2.1/os-aggregates"
        made = session.post(root, json={"aggregate": {"name": "one more"}}, timeout=60)
        path = f"{root}/{made.json()['aggregate']['id']}/action"
        taken = []
        before = site.cpu_seconds()
        for number in range(min(count, site.size.hosts)):
            begun = time.perf_counter()
            answer = session.post(path, json={"add_host": {"host": host_name(number)}}, timeout=60)
            taken.append(time.perf_counter() - begun)
            if answer.status_code != 200:
                raise WrongAnswerError(answer.text)
        used = (site.cpu_seconds() - before) / len(taken)
    return Figure(site.size.hosts, site.size.nodes, "add a host, median", statistics.median(taken), used)
