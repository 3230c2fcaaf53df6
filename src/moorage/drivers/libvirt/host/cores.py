"""Which processors of a cell vCPUs get that have one each: threads of the same cores, as far as it goes."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.drivers.libvirt.host.machine import HostCpu
from moorage.topology.request import ThreadPolicy


def choose(
    cpus: Iterable[HostCpu], free: frozenset[int], count: int, policy: ThreadPolicy | None
) -> list[int] | None:
    """So many of the free ones, threads of a core beside each other; None if there are too few."""
    groups = _free_cores(cpus, free)
    if policy is ThreadPolicy.ISOLATE:
        chosen = [core[0] for core, is_whole in groups if is_whole]
    elif policy is ThreadPolicy.REQUIRE:
        chosen = [cpu for core, _ in groups if len(core) > 1 for cpu in core]
    else:
        chosen = _packed([core for core, _ in groups], count)
    return chosen[:count] if len(chosen) >= count else None


def threads_each(cpus: Iterable[HostCpu], chosen: list[int]) -> int:
    """How many threads of each core these are, in order; 1 if not as many of each."""
    siblings = {cpu.id: cpu.siblings for cpu in cpus}
    sizes = {len(siblings[cpu].intersection(chosen)) for cpu in chosen}
    return sizes.pop() if len(sizes) == 1 else 1


def _free_cores(cpus: Iterable[HostCpu], free: frozenset[int]) -> list[tuple[list[int], bool]]:
    """The free threads of each core, and whether these are all that it has."""
    found = {}
    for cpu in cpus:
        if cpu.id in free:
            found[min(cpu.siblings)] = (sorted(cpu.siblings & free), cpu.siblings <= free)
    return [found[core] for core in sorted(found)]


def _packed(groups: list[list[int]], count: int) -> list[int]:
    """Whole cores first, then the smallest rests that do, so that whole cores are left for others."""
    groups = sorted(groups, key=len, reverse=True)
    chosen: list[int] = []
    while groups and len(chosen) < count:
        left = count - len(chosen)
        fitting = [core for core in groups if len(core) <= left]
        core = fitting[0] if fitting else groups[-1]
        groups.remove(core)
        chosen += core
    return chosen
