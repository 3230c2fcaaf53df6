"""Random fleets: small enough for the reference, odd enough to meet every rule of a search."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.support.wire import Reply, Wire

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF", "CUSTOM_ACCELERATOR")
TRAITS = ("HW_CPU_X86_AVX2", "STORAGE_DISK_SSD", "CUSTOM_RED", "CUSTOM_GREEN", "CUSTOM_BLUE")
SHARING = "MISC_SHARES_VIA_AGGREGATE"
AGGREGATES = tuple(str(uuid.uuid5(uuid.NAMESPACE_DNS, f"aggregate-{n}")) for n in range(4))
PROJECTS = ("project-a", "project-b")
USERS = ("user-a", "user-b")


@dataclass
class Provider:
    uuid: str
    name: str
    parent: str | None
    inventories: dict[str, dict[str, Any]]
    traits: list[str]
    aggregates: list[str]


@dataclass
class Fleet:
    providers: list[Provider] = field(default_factory=list)
    claims: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Consumer and body: real allocations, not all of which need to fit."""

    @property
    def uuids(self) -> list[str]:
        return [provider.uuid for provider in self.providers]

    def tree_of(self, provider: Provider) -> list[Provider]:
        """Parents come before their children in the list, so one pass is enough."""
        by_uuid = {one.uuid: one for one in self.providers}
        root = provider
        while root.parent is not None:
            root = by_uuid[root.parent]
        members = {root.uuid}
        for one in self.providers:
            if one.parent in members:
                members.add(one.uuid)
        return [one for one in self.providers if one.uuid in members]

    @property
    def consumers(self) -> list[str]:
        return [consumer for consumer, _ in self.claims]

    def build(self, wire: Wire) -> list[int]:
        """Create everything through the API; the statuses of the claims are part of the answer."""
        for name in CLASSES:
            if name.startswith("CUSTOM_"):
                _must(wire.put(f"/resource_classes/{name}"))
        for name in TRAITS:
            if name.startswith("CUSTOM_"):
                _must(wire.put(f"/traits/{name}"))
        for provider in self.providers:
            _create(wire, provider)
        return [wire.put(f"/allocations/{consumer}", body).status for consumer, body in self.claims]


def make_fleet(dice: random.Random) -> Fleet:
    fleet = Fleet()
    for _ in range(dice.randint(1, 4)):
        _grow_tree(fleet, dice)
    for _ in range(dice.choice((0, 0, 1, 1, 2))):
        _add_sharing_root(fleet, dice)
    for _ in range(dice.randint(0, 2 * len(fleet.providers))):
        _add_claim(fleet, dice)
    return fleet


def _grow_tree(fleet: Fleet, dice: random.Random) -> None:
    root = _add(fleet, dice, None)
    if dice.random() < 0.35:
        return
    for _ in range(dice.randint(1, 3)):
        child = _add(fleet, dice, root.uuid)
        for _ in range(dice.choice((0, 0, 0, 1, 2))):
            _add(fleet, dice, child.uuid)


def _add_sharing_root(fleet: Fleet, dice: random.Random) -> None:
    """Only roots share: a child that does can make the reference fail."""
    provider = _add(fleet, dice, None)
    provider.traits.append(SHARING)
    provider.aggregates = dice.sample(AGGREGATES, dice.choice((1, 1, 2)))
    if dice.random() < 0.7:
        for name in ("DISK_GB", "SRIOV_NET_VF"):
            provider.inventories.setdefault(name, _inventory(dice))


def _add(fleet: Fleet, dice: random.Random, parent: str | None) -> Provider:
    """Roots offer the usual classes more often than not, children a few: as real fleets do."""
    usual = CLASSES[:3] if parent is None and dice.random() < 0.6 else ()
    few = dice.sample(CLASSES, dice.choice((0, 1, 1, 2, 3)))
    provider = Provider(
        uuid=_uuid(dice),
        name=f"provider-{len(fleet.providers)}",
        parent=parent,
        inventories={name: _inventory(dice) for name in dict.fromkeys((*usual, *few))},
        traits=dice.sample(TRAITS, dice.choice((0, 1, 1, 2, 3))),
        aggregates=dice.sample(AGGREGATES, dice.choice((0, 0, 1, 1, 2))),
    )
    fleet.providers.append(provider)
    return provider


def _inventory(dice: random.Random) -> dict[str, Any]:
    """Mostly roomy; one in three has a rule that a careless sum would break."""
    total = dice.choice((1, 4, 8, 8, 16, 32))
    inventory = {
        "total": total,
        "reserved": 0,
        "min_unit": 1,
        "max_unit": total,
        "step_size": 1,
        "allocation_ratio": 1.0,
    }
    if dice.random() < 0.35:
        name, values = dice.choice(
            (
                ("reserved", (1, total // 2, total)),
                ("min_unit", (2, 3)),
                ("max_unit", (1, 2, 3, 100)),
                ("step_size", (2, 3)),
                ("allocation_ratio", (0.5, 1.5, 4.0)),
            )
        )
        inventory[name] = dice.choice(values)
    return inventory


def _add_claim(fleet: Fleet, dice: random.Random) -> None:
    allocations: dict[str, dict[str, Any]] = {}
    for provider in dice.sample(fleet.providers, min(len(fleet.providers), dice.choice((1, 1, 2)))):
        if provider.inventories:
            names = dice.sample(sorted(provider.inventories), dice.randint(1, len(provider.inventories)))
            allocations[provider.uuid] = {"resources": {name: dice.choice((1, 1, 2, 4)) for name in names}}
    if allocations:
        body = {
            "allocations": allocations,
            "project_id": dice.choice(PROJECTS),
            "user_id": dice.choice(USERS),
            "consumer_generation": None,
            "consumer_type": dice.choice(("INSTANCE", "MIGRATION")),
        }
        fleet.claims.append((_uuid(dice), body))


def _create(wire: Wire, provider: Provider) -> None:
    path = f"/resource_providers/{provider.uuid}"
    body = {"uuid": provider.uuid, "name": provider.name}
    if provider.parent is not None:
        body["parent_provider_uuid"] = provider.parent
    _must(wire.post("/resource_providers", body))
    generation = 0
    for part, content in (
        ("inventories", provider.inventories),
        ("traits", provider.traits),
        ("aggregates", provider.aggregates),
    ):
        if content:
            answer = _must(
                wire.put(f"{path}/{part}", {"resource_provider_generation": generation, part: content})
            )
            generation = answer.json()["resource_provider_generation"]


def _must(reply: Reply) -> Reply:
    if reply.status >= 300:
        raise RuntimeError(f"the fleet could not be built: {reply.status} {reply.body!r}")
    return reply


def _uuid(dice: random.Random) -> str:
    return str(uuid.UUID(int=dice.getrandbits(128), version=4))
