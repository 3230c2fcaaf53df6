"""What a boot and a live migration take, of both sides: on the clock, and in processor time."""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from bench.machines.alone import Alone
from tests.lab.libvirt.hosts import LibvirtHost
from tests.support.deployment import Part
from tests.support.guest_deployment import GuestDeployment
from tests.support.processes import cpu_seconds, wait_until

_AT_ONCE = 2
_READY = "guest: ready"
_BOOT_SECONDS = 600.0


@dataclass
class Boots:
    """Of one side, all rounds together."""

    count: int = 0
    seconds: float = 0.0
    own: float = 0.0
    """Processor seconds of the agent; of `virsh` and what it is helped by, alone."""
    commands: float = 0.0
    """Of the commands that the agent ran, in addition."""
    others: float = 0.0
    """Of the API, Placement and the conductors."""

    @property
    def a_minute(self) -> float:
        return 60 * self.count / self.seconds

    @property
    def control_plane(self) -> float:
        """Processor seconds a boot, of everybody but libvirtd and the guest."""
        return (self.own + self.commands + self.others) / self.count


@dataclass
class Moves:
    downtimes: list[int] = field(default_factory=list)
    """Milliseconds that the guest stood still, as libvirt says."""
    jobs: list[int] = field(default_factory=list)
    """Milliseconds of libvirt's own work."""
    totals: list[float] = field(default_factory=list)
    """Seconds from the order until the server is shown on its new host; until `virsh` returns, alone."""

    def add(self, host: LibvirtHost, server: str, total: float) -> None:
        told = host.run("virsh", "domjobinfo", "--completed", server)
        self.downtimes.append(_milliseconds(told, "Total downtime"))
        self.jobs.append(_milliseconds(told, "Time elapsed"))
        self.totals.append(total)

    @property
    def downtime(self) -> float:
        return median(self.downtimes)

    @property
    def job(self) -> float:
        return median(self.jobs)

    @property
    def total(self) -> float:
        return median(self.totals)


def boot_through(cloud: GuestDeployment, host: str, count: int, into: Boots) -> list[str]:
    agent, others = cloud.agents[host], [cloud.placement, *cloud.apis, *cloud.conductors]
    before, before_commands, before_others = _cpu([agent]), _commands(agent), _cpu(others)
    begun = time.monotonic()
    servers = [cloud.boot(host) for _ in range(count)]
    for server in servers:
        cloud.wait_for(server, "ACTIVE", _BOOT_SECONDS)
    into.seconds += time.monotonic() - begun
    into.count += count
    into.own += _cpu([agent]) - before
    into.commands += _commands(agent) - before_commands
    into.others += _cpu(others) - before_others
    return servers


def boot_alone(alone: Alone, host: LibvirtHost, count: int, into: Boots) -> list[str]:
    before = _children()
    begun = time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        made = list(pool.map(alone.boot, [host] * count))
    into.seconds += time.monotonic() - begun
    into.count += count
    into.own += _children() - before
    return made


def guest_boot(host: LibvirtHost, server: str, log: Path) -> float:
    """Processor seconds of a guest until it is ready."""

    def is_ready() -> bool:
        return log.exists() and _READY in log.read_text(errors="replace")

    wait_until(is_ready, "the guest", _BOOT_SECONDS)
    return cpu_seconds([host.guest_pids()[server]])


def move_through(cloud: GuestDeployment, server: str, source: str, target: str, into: Moves) -> None:
    begun = time.monotonic()
    cloud.act(server, "os-migrateLive", {"host": target, "block_migration": "auto"})
    wait_until(partial(_is_at, cloud, server, target), "the move", _BOOT_SECONDS)
    into.add(cloud.lab.hosts[target], server, time.monotonic() - begun)


def move_alone(alone: Alone, server: str, source: LibvirtHost, target: LibvirtHost, into: Moves) -> None:
    begun = time.monotonic()
    alone.plug(target, server)
    alone.migrate(source, target, server)
    alone.unplug(source, server)
    into.add(target, server, time.monotonic() - begun)


def _is_at(cloud: GuestDeployment, server: str, host: str) -> bool:
    shown = cloud.show(server)
    if shown["OS-EXT-STS:task_state"] is not None:
        return False
    assert shown["OS-EXT-SRV-ATTR:host"] == host, f"it did not move: {shown}\n{cloud.logs()}"
    return True


def _cpu(parts: Sequence[Part]) -> float:
    return cpu_seconds([pid for part in parts if part.service is not None for pid in part.service.pids()])


def _commands(part: Part) -> float:
    """Of those that have ended, which are children of its processes."""
    assert part.service is not None
    ticks = 0
    for pid in part.service.pids():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[13]) + int(fields[14])
    return ticks / os.sysconf("SC_CLK_TCK")


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _milliseconds(told: str, name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+)\s+ms", told)
    assert found, told
    return int(found[1])
