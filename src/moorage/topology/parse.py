"""From extra specs and image properties to a `TopologyRequest`; what makes no sense is refused.

What an image says counts where its flavor leaves it open; an image that contradicts its flavor is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from moorage.topology import pages
from moorage.topology.cpu_set import parse_cpu_set
from moorage.topology.errors import BadTopologyError
from moorage.topology.request import (
    CellRequest,
    CpuPolicy,
    DeviceRequest,
    PciAffinity,
    ThreadPolicy,
    TopologyRequest,
)

P = TypeVar("P", bound=StrEnum)
_PCPU, _VCPU = "resources:PCPU", "resources:VCPU"
_ALIASES = "pci_passthrough:alias"
_OURS = ("hw:", "hw_", _ALIASES, _PCPU)
"""How all begins that is read here."""
_CELL = re.compile(r"(hw:|hw_)numa_(?:cpus|mem)\.\d+")


def parse_topology(flavor: Mapping[str, Any], image_properties: Mapping[str, str]) -> TopologyRequest:
    """BadTopologyError if it makes no sense."""
    vcpus, memory_mb = int(flavor["vcpus"]), int(flavor["ram"])
    specs: Mapping[str, Any] = flavor.get("extra_specs") or {}
    if not any(key.startswith(_OURS) for keys in (specs, image_properties) for key in keys):
        return TopologyRequest(vcpus=vcpus)  # most servers are plain ones
    asked = _Asked(specs, image_properties)
    policy = _cpu_policy(asked, vcpus)
    page_kib = _page_kib(asked)
    dedicated = _dedicated(asked, policy, vcpus)
    cells = _cells(asked, vcpus, memory_mb)
    if not cells and (dedicated or page_kib):
        cells = (CellRequest(tuple(range(vcpus)), memory_mb),)
    for cell in cells if page_kib else ():
        if cell.memory_mb * 1024 % page_kib:
            raise BadTopologyError(
                asked.key("mem_page_size"), f"does not divide the {cell.memory_mb} MiB of a cell of the guest"
            )
    return TopologyRequest(
        vcpus=vcpus,
        cpu_policy=policy,
        dedicated=dedicated,
        thread_policy=_thread_policy(asked, policy),
        isolated_emulator=_isolated_emulator(asked, dedicated),
        page_kib=page_kib,
        cells=cells,
        devices=tuple(_devices(asked)),
        pci_affinity=_choice(asked, "pci_numa_affinity_policy", PciAffinity) or PciAffinity.LEGACY,
    )


class _Asked:
    """What both say, by the name that they have in common: `hw:cpu_policy` and `hw_cpu_policy`."""

    def __init__(self, specs: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        self.specs = {key: str(value) for key, value in specs.items()}
        self.properties = {key: str(value) for key, value in properties.items() if value is not None}

    def flavor(self, name: str) -> str | None:
        return self.specs.get(f"hw:{name}")

    def image(self, name: str) -> str | None:
        return self.properties.get(f"hw_{name}")

    def either(self, name: str) -> str | None:
        """The flavor's, else the image's; refused if they contradict each other."""
        ours, theirs = self.flavor(name), self.image(name)
        if ours is not None and theirs is not None and ours != theirs:
            raise BadTopologyError(f"hw_{name}", f"is '{theirs}', but the flavor says '{ours}'")
        return theirs if ours is None else ours

    def key(self, name: str) -> str:
        """Who says it."""
        return f"hw:{name}" if self.flavor(name) is not None else f"hw_{name}"


def _choice(asked: _Asked, name: str, kind: type[P]) -> P | None:
    said = asked.either(name)
    if said is None:
        return None
    try:
        return kind(said)
    except ValueError:
        wanted = ", ".join(kind)
        raise BadTopologyError(asked.key(name), f"must be one of {wanted}, not '{said}'") from None


def _cpu_policy(asked: _Asked, vcpus: int) -> CpuPolicy:
    """A flavor that dedicates processors does so for every image; so does one that asks for PCPU itself."""
    by_hand = [key for key in (_PCPU, _VCPU) if key in asked.specs]
    if by_hand and asked.flavor("cpu_policy") is not None:
        raise BadTopologyError(by_hand[0], "is not allowed together with hw:cpu_policy")
    if asked.specs.get(_PCPU, "0") != "0":
        if asked.specs[_PCPU] != str(vcpus):
            raise BadTopologyError(_PCPU, f"must be {vcpus}, the number of vCPUs")
        return CpuPolicy.DEDICATED
    if asked.flavor("cpu_policy") == CpuPolicy.DEDICATED:
        return CpuPolicy.DEDICATED
    return _choice(asked, "cpu_policy", CpuPolicy) or CpuPolicy.SHARED


def _dedicated(asked: _Asked, policy: CpuPolicy, vcpus: int) -> frozenset[int]:
    mask = asked.flavor("cpu_dedicated_mask")
    if policy is not CpuPolicy.MIXED:
        if mask is not None:
            raise BadTopologyError("hw:cpu_dedicated_mask", "needs hw:cpu_policy=mixed")
        return frozenset(range(vcpus)) if policy is CpuPolicy.DEDICATED else frozenset()
    if mask is None:
        raise BadTopologyError(asked.key("cpu_policy"), "needs hw:cpu_dedicated_mask")
    try:
        found = parse_cpu_set(mask)
    except ValueError as error:
        raise BadTopologyError("hw:cpu_dedicated_mask", f"is no set of vCPUs: {error}") from None
    everything = frozenset(range(vcpus))
    if all(part.strip().startswith("^") for part in mask.split(",")):
        found = everything - parse_cpu_set(mask.replace("^", ""))
    if not found < everything or not found:
        raise BadTopologyError(
            "hw:cpu_dedicated_mask", f"must name some of the vCPUs 0 to {vcpus - 1}, not all"
        )
    return found


def _thread_policy(asked: _Asked, policy: CpuPolicy) -> ThreadPolicy | None:
    found = _choice(asked, "cpu_thread_policy", ThreadPolicy)
    if found is not None and policy is CpuPolicy.SHARED:
        raise BadTopologyError(asked.key("cpu_thread_policy"), "needs a CPU policy of 'dedicated' or 'mixed'")
    return found


def _isolated_emulator(asked: _Asked, dedicated: frozenset[int]) -> bool:
    isolated = asked.flavor("emulator_threads_policy") == "isolate"
    if isolated and not dedicated:
        raise BadTopologyError("hw:emulator_threads_policy", "needs hw:cpu_policy=dedicated")
    return isolated


def _page_kib(asked: _Asked) -> int:
    """An image may choose a size only where its flavor asks for some large one, or for any."""
    ours, theirs = asked.flavor("mem_page_size"), asked.image("mem_page_size")
    if theirs is not None and ours not in ("large", "any"):
        raise BadTopologyError("hw_mem_page_size", "needs a flavor with hw:mem_page_size=large or any")
    said = ours if theirs is None else theirs
    if said is None or said in ("small", "any"):
        return 0
    if said == "large":
        return pages.LARGE_KIB
    try:
        size = pages.parse_size(said)
    except ValueError:
        raise BadTopologyError(asked.key("mem_page_size"), f"is no size of a page: '{said}'") from None
    if size == 0:
        raise BadTopologyError(asked.key("mem_page_size"), "must be more than 0")
    return 0 if size <= pages.ORDINARY_KIB else size


def _cells(asked: _Asked, vcpus: int, memory_mb: int) -> tuple[CellRequest, ...]:
    said = asked.either("numa_nodes")
    stray = next((key for key in (*asked.specs, *asked.properties) if _CELL.fullmatch(key)), None)
    if said is None:
        if stray is not None:
            raise BadTopologyError(stray, "needs hw:numa_nodes")
        return ()
    count = int(said) if said.isascii() and said.isdigit() and len(said) < 5 else 0
    if not 1 <= count <= vcpus:
        raise BadTopologyError(asked.key("numa_nodes"), f"must be a number from 1 to {vcpus}, the vCPUs")
    if stray is None:
        return _alike(asked, count, vcpus, memory_mb)
    cells = tuple(_cell(asked, number) for number in range(count))
    if sorted(vcpu for cell in cells for vcpu in cell.vcpus) != list(range(vcpus)):
        raise BadTopologyError(asked.key("numa_nodes"), "needs each vCPU in exactly one of the cells")
    if sum(cell.memory_mb for cell in cells) != memory_mb:
        raise BadTopologyError(
            asked.key("numa_nodes"), f"needs cells with {memory_mb} MiB of memory together"
        )
    return cells


def _alike(asked: _Asked, count: int, vcpus: int, memory_mb: int) -> tuple[CellRequest, ...]:
    if vcpus % count or memory_mb % count:
        raise BadTopologyError(
            asked.key("numa_nodes"), "does not divide vCPUs and memory: say what each cell has"
        )
    each = vcpus // count
    return tuple(
        CellRequest(tuple(range(number * each, (number + 1) * each)), memory_mb // count)
        for number in range(count)
    )


def _cell(asked: _Asked, number: int) -> CellRequest:
    cpus, memory = asked.either(f"numa_cpus.{number}"), asked.either(f"numa_mem.{number}")
    if cpus is None or memory is None:
        raise BadTopologyError(asked.key("numa_nodes"), f"needs vCPUs and memory of cell {number}")
    try:
        return CellRequest(tuple(sorted(parse_cpu_set(cpus))), int(memory))
    except ValueError as error:
        raise BadTopologyError(asked.key(f"numa_cpus.{number}"), f"makes no sense: {error}") from None


def _devices(asked: _Asked) -> list[DeviceRequest]:
    found = []
    for part in filter(None, asked.specs.get(_ALIASES, "").split(",")):
        alias, _, count = part.strip().partition(":")
        if not alias or not count.isascii() or not count.isdigit() or not 1 <= int(count) <= 64:
            raise BadTopologyError(_ALIASES, f"must say NAME:COUNT, not '{part}'")
        found.append(DeviceRequest(alias, int(count)))
    return found
