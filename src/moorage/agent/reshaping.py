"""Reshaping: where allocations go when an inventory has moved within a node's tree. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from moorage.drivers.contract import Holding
from moorage.placement.client.contract import ConsumerClaim, ProviderInventory, TreeProvider

Inventories = Mapping[str, Mapping[str, ProviderInventory]]
"""By resource class, by provider."""
_Slot = tuple[str, str]
"""A provider and a resource class: one inventory."""


@dataclass(frozen=True)
class ReshapePlan:
    claims: list[ConsumerClaim] = field(default_factory=list)
    """What consumers hold afterwards, of those for whom that changes."""
    kept: dict[str, set[str]] = field(default_factory=dict)
    """By provider, classes that shall go and can't: somebody has something of them, and no room elsewhere."""


def lost(found: Iterable[TreeProvider], wanted: Inventories) -> dict[str, set[str]]:
    """By provider, the classes that it has now and shall not have."""
    gone = {provider.uuid: provider.inventories.keys() - wanted.get(provider.uuid, {}) for provider in found}
    return {uuid: classes for uuid, classes in gone.items() if classes}


def plan(
    found: Sequence[TreeProvider],
    wanted: Inventories,
    consumers: Sequence[ConsumerClaim],
    holdings: Sequence[Holding],
) -> ReshapePlan:
    """`consumers` are all that hold something of the providers in `found`."""
    leaving = lost(found, wanted)
    room = _Room(wanted, consumers)
    result = ReshapePlan()
    for claim in consumers:
        said = [holding for holding in holdings if holding.server_uuid == claim.consumer_uuid]
        moved = _moved(claim, leaving, room, said, result.kept)
        if moved != claim.allocations:
            result.claims.append(msgspec.structs.replace(claim, allocations=moved))
    return result


def _moved(
    claim: ConsumerClaim,
    leaving: Mapping[str, set[str]],
    room: _Room,
    said: Sequence[Holding],
    kept: dict[str, set[str]],
) -> dict[str, dict[str, int]]:
    """What a consumer holds afterwards; what has to stay where it is, is noted in `kept`."""
    held = {provider: dict(amounts) for provider, amounts in claim.allocations.items()}
    going = {
        (provider, name): amounts[name]
        for provider, amounts in claim.allocations.items()
        for name in sorted(leaving.get(provider, set()) & amounts.keys())
    }
    home = room.for_all(going)
    for (provider, name), amount in going.items():
        shares = room.take(name, amount, said, home)
        if shares is None:
            kept.setdefault(provider, set()).add(name)
            continue
        del held[provider][name]
        for target, share in shares.items():
            there = held.setdefault(target, {})
            there[name] = there.get(name, 0) + share
    return {provider: amounts for provider, amounts in held.items() if amounts}


class _Room:
    """What is free in the tree as it shall be."""

    def __init__(self, wanted: Inventories, consumers: Sequence[ConsumerClaim]) -> None:
        self._inventories = {
            (uuid, name): inventory for uuid, all_of in wanted.items() for name, inventory in all_of.items()
        }
        self._free = {slot: inventory.capacity for slot, inventory in self._inventories.items()}
        for claim in consumers:
            for uuid, amounts in claim.allocations.items():
                for name, amount in amounts.items():
                    if (uuid, name) in self._free:
                        self._free[uuid, name] -= amount

    def for_all(self, going: Mapping[_Slot, int]) -> str | None:
        """A provider that can have all of this, so that what was together stays so."""
        amounts = Counter[str]()
        for (_, name), amount in going.items():
            amounts[name] += amount
        homes = dict.fromkeys(uuid for uuid, _ in self._inventories)
        return next(
            (uuid for uuid in homes if all(self._most((uuid, name)) >= amounts[name] for name in amounts)),
            None,
        )

    def take(
        self, name: str, amount: int, said: Sequence[Holding], home: str | None
    ) -> dict[str, int] | None:
        """So much of each provider: as the driver said, else of one, else of several; None if too little."""
        shares = self._as_said(name, amount, said) or self._of_one(name, amount, home)
        shares = shares or self._of_several(name, amount)
        if shares is None:
            return None
        for uuid, share in shares.items():
            self._free[uuid, name] -= share
        return shares

    def _as_said(self, name: str, amount: int, said: Sequence[Holding]) -> dict[str, int] | None:
        shares: dict[str, int] = {}
        for holding in said:
            if name in holding.resources:
                shares[holding.provider_uuid] = holding.resources[name]
        fits = all(share <= self._most((uuid, name)) for uuid, share in shares.items())
        return shares if fits and sum(shares.values()) == amount else None

    def _of_one(self, name: str, amount: int, home: str | None) -> dict[str, int] | None:
        fitting = [uuid for uuid in self._providers(name) if self._most((uuid, name)) >= amount]
        if not fitting:
            return None
        return {home if home is not None and home in fitting else fitting[0]: amount}

    def _of_several(self, name: str, amount: int) -> dict[str, int] | None:
        shares: dict[str, int] = {}
        for uuid in self._providers(name):
            share = min(amount - sum(shares.values()), self._most((uuid, name)))
            if share > 0:
                shares[uuid] = share
        return shares if sum(shares.values()) == amount else None

    def _providers(self, name: str) -> Iterator[str]:
        return (uuid for uuid, of_class in self._inventories if of_class == name)

    def _most(self, slot: _Slot) -> int:
        inventory = self._inventories.get(slot)
        return 0 if inventory is None else min(self._free[slot], inventory.max_unit)
