"""What is measured of booting, with the same code for both forms."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families

from bench.boot.sites import Site, metrics
from bench.placement import load
from bench.placement.load import Job, message
from moorage.db.tables.compute import servers
from tests.support.wire import Wire

DECISION_SECONDS = "moorage_scheduler_decision_seconds"
PASS_SECONDS = "moorage_scheduler_pass_seconds"
"""A decision and its claim."""
LONGEST_BUILD = 300.0
WARM_UP = 32


class BootFailedError(Exception):
    """A server that did not come up was fast for nothing."""


@dataclass(frozen=True)
class Boots:
    """Many servers, asked for one by one by several clients at once."""

    count: int
    seconds: float
    """From the first request to the last server that runs."""
    latencies: list[float]
    """Of each server: from its request to the moment that it runs."""
    answer_ms: float
    """Median time until a request was answered."""
    cpu_seconds: float

    @property
    def rate(self) -> float:
        return self.count / self.seconds

    def latency(self, percent: int) -> float:
        return statistics.quantiles(self.latencies, n=100)[percent - 1]


def boots(site: Site, image: str, count: int, clients: int) -> Boots:
    """Ask for `count` servers as fast as they are accepted, and wait until all of them run."""
    _boot(site, image, "warm", WARM_UP, clients)
    used = site.cpu_seconds()
    asked, outcome = _boot(site, image, "boot", count, clients)
    since = _running_since(site, asked)
    return Boots(
        count=count,
        seconds=max(since.values()) - min(asked.values()),
        latencies=[since[name] - asked[name] for name in asked],
        answer_ms=outcome.median_ms,
        cpu_seconds=site.cpu_seconds() - used,
    )


def _running_since(site: Site, asked: dict[str, float]) -> dict[str, float]:
    """When each of these servers began to run."""
    with site.database.connect() as connection:
        query = sa.select(servers.c.name, servers.c.launched_at).where(servers.c.name.in_(list(asked)))
        running: dict[str, datetime | None] = dict(connection.execute(query).all())
    missing = sorted(name for name in asked if running.get(name) is None)
    if missing:
        raise BootFailedError(f"{len(missing)} of {len(asked)} servers do not run: {missing[:3]}")
    return {name: moment.replace(tzinfo=UTC).timestamp() for name, moment in running.items() if moment}


def _boot(
    site: Site, image: str, prefix: str, count: int, clients: int
) -> tuple[dict[str, float], load.Outcome]:
    asked: dict[str, float] = {}

    def jobs() -> Iterator[Job]:
        for number in range(count):
            name = f"{prefix}-{number}"
            body = {"server": {"name": name, "flavorRef": "1", "imageRef": image}}
            request = message("POST", "/v2.1/servers", body)
            asked[name] = time.time()
            yield [request]

    outcome = load.run(site.compute_port, jobs(), clients)
    if outcome.succeeded != count:
        raise BootFailedError(f"requests were refused: {outcome.failures}")
    site.wait_for_builds(LONGEST_BUILD, pause=min(0.25, 0.02 * count))
    return asked, outcome


@dataclass(frozen=True)
class LoneBoots:
    """Medians of servers that come one at a time, in milliseconds."""

    decision: float
    with_claim: float
    """A decision and its claim."""
    running: float
    """From the request to the moment that it runs."""


def lone_boots(site: Site, image: str, count: int) -> LoneBoots:
    names = (DECISION_SECONDS, PASS_SECONDS)
    before = [_histogram(site, name) for name in names]
    asked: dict[str, float] = {}
    for number in range(count):
        asked |= _boot(site, image, f"lone-{number}", 1, clients=1)[0]
    decision, with_claim = (
        1000 * _median({bound: seen - old.get(bound, 0.0) for bound, seen in _histogram(site, name).items()})
        for name, old in zip(names, before, strict=True)
    )
    since = _running_since(site, asked)
    running = 1000 * statistics.median(since[name] - asked[name] for name in asked)
    return LoneBoots(decision, with_claim, running)


def _histogram(site: Site, name: str) -> dict[float, float]:
    """So far: by upper bound, how many took no longer."""
    found: dict[float, float] = {}
    for port in site.metrics_ports:
        for family in text_string_to_metric_families(metrics(port)):
            for sample in family.samples:
                if sample.name == f"{name}_bucket":
                    bound = float(sample.labels["le"])
                    found[bound] = found.get(bound, 0.0) + sample.value
    return found


def _median(histogram: dict[float, float]) -> float:
    """Within its bucket, decisions are taken to be spread evenly."""
    half, lower, below = max(histogram.values()) / 2, 0.0, 0.0
    for bound in sorted(histogram):
        if histogram[bound] >= half:
            return lower + (bound - lower) * (half - below) / max(1.0, histogram[bound] - below)
        lower, below = bound, histogram[bound]
    return lower


def an_image(site: Site) -> str:
    with Wire(site.compute_port) as wire:
        listed = wire.get("/image/v2/images").json()["images"]
    return next(str(image["id"]) for image in listed if image["name"].startswith("cirros"))
