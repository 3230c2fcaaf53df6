"""What is measured of a fleet that hosts share."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.fleet.site import DOWN_SECONDS, PASS_SECONDS, Site
from tests.support.processes import wait_until

LONGEST = 900.0


@dataclass(frozen=True)
class Figures:
    nodes: int
    agents: int
    cold_seconds: float
    """From the start of the agents until every node has an owner and a provider."""
    cold_cpu_seconds: float
    pass_cpu_seconds: float
    """Of all processes, for one pass in which nothing has changed."""
    idle_agent_cpu_seconds: float
    """Of the busiest agent, in the same time."""
    pass_rows_written: int
    takeover_seconds: float | None
    """From the moment that a killed agent counts as down until its last node has an owner that lives."""
    agent_mib: int


def measure(site: Site, agents: int) -> Figures:
    names = [f"host-{number}" for number in range(1, agents + 1)]
    before, began = site.cpu(), time.monotonic()
    for name in names:
        site.start_agent(name)
    wait_until(lambda: _settled(site, set(names)) and site.providers() == site.count, "the fleet", LONGEST)
    cold, cold_cpu = time.monotonic() - began, site.cpu() - before
    time.sleep(PASS_SECONDS * 2)  # what is still on its way
    memory = site.memory()
    before, each_before, written = site.cpu(), site.agents_cpu(), site.rows_written()
    time.sleep(PASS_SECONDS)
    pass_cpu, pass_rows = site.cpu() - before, site.rows_written() - written
    idle_cpu = max(seconds - each_before[host] for host, seconds in site.agents_cpu().items())
    takeover = _takeover(site, names) if agents > 1 else None
    return Figures(
        nodes=site.count,
        agents=agents,
        cold_seconds=cold,
        cold_cpu_seconds=cold_cpu,
        pass_cpu_seconds=pass_cpu,
        idle_agent_cpu_seconds=idle_cpu,
        pass_rows_written=pass_rows,
        takeover_seconds=takeover,
        agent_mib=memory // 2**20,
    )


def _takeover(site: Site, names: list[str]) -> float:
    site.agents[names[0]].kill()
    began = time.monotonic()
    wait_until(lambda: _settled(site, set(names[1:])), "the peers to take over", LONGEST)
    return time.monotonic() - began - DOWN_SECONDS


def _settled(site: Site, hosts: set[str]) -> bool:
    time.sleep(0.2)
    owned = site.owned()
    return owned.keys() == hosts and sum(owned.values()) == site.count
