"""The fleet that both sides are measured with: node number i is the same in every size and every run."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
COMMON_TRAITS = (
    "COMPUTE_NET_ATTACH_INTERFACE",
    "COMPUTE_VOLUME_ATTACH",
    "COMPUTE_VOLUME_MULTI_ATTACH",
    "HW_CPU_X86_SSE42",
    "HW_CPU_X86_AESNI",
    "HW_CPU_X86_AVX",
    "HW_CPU_X86_VMX",
    "HW_CPU_HYPERTHREADING",
)
# Most of a fleet has the newer instructions and about half has a fast disk: a search has to choose.
SOMETIMES = {"HW_CPU_X86_AVX2": 0.8, "HW_CPU_X86_AVX512F": 0.3, "STORAGE_DISK_SSD": 0.5}
ZONES = 3
NODES_A_RACK = 40
USED_SHARE = 0.3
ASK = {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 80}


@dataclass(frozen=True, slots=True)
class Inventory:
    total: int
    reserved: int
    allocation_ratio: float

    def as_body(self) -> dict[str, object]:
        return {
            "total": self.total,
            "reserved": self.reserved,
            "min_unit": 1,
            "max_unit": self.total,
            "step_size": 1,
            "allocation_ratio": self.allocation_ratio,
        }


@dataclass(frozen=True, slots=True)
class Node:
    """One compute node: a root provider, and whether a server of the usual size already runs on it."""

    uuid: str
    name: str
    inventories: dict[str, Inventory]
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]
    occupant: str | None


def make_nodes(count: int) -> Iterator[Node]:
    for number in range(count):
        yield _make_node(number)


def _make_node(number: int) -> Node:
    dice = random.Random(number)
    cores = dice.choice((32, 64, 128))
    return Node(
        uuid=_uuid(dice),
        name=f"node-{number:06d}",
        inventories={
            "VCPU": Inventory(cores, 0, 4.0),
            "MEMORY_MB": Inventory(cores * 4096, 512, 1.0),
            "DISK_GB": Inventory(cores * 40, 0, 1.0),
        },
        traits=COMMON_TRAITS + tuple(trait for trait, share in SOMETIMES.items() if dice.random() < share),
        aggregates=(named_uuid(f"zone-{number % ZONES}"), named_uuid(f"rack-{number // NODES_A_RACK}")),
        occupant=_uuid(dice) if dice.random() < USED_SHARE else None,
    )


def named_uuid(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def _uuid(dice: random.Random) -> str:
    return str(uuid.UUID(int=dice.getrandbits(128), version=4))
