"""Trees of providers and who holds what of them, with the calls of the Placement API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from moorage.placement.client.contract import ConsumerClaim, ProviderInventory, TreeProvider, TreeUsage
from moorage.placement.client.link import Link, decoded, expect

ClaimBody = Callable[[ConsumerClaim], dict[str, Any]]
"""A claim as this Placement's version takes it."""
_KNOWN_TYPE = "INSTANCE"
_UNKNOWN_TYPE = "unknown"
"""What Placement says of a consumer that was made before there were types; it does not take it back."""


class _Listed(msgspec.Struct):
    uuid: str
    name: str
    parent_provider_uuid: str | None = None


class _Listing(msgspec.Struct):
    resource_providers: list[_Listed]


class _Inventories(msgspec.Struct):
    resource_provider_generation: int
    inventories: dict[str, ProviderInventory]


class _Usages(msgspec.Struct):
    usages: dict[str, int]


class _Users(msgspec.Struct):
    allocations: dict[str, msgspec.Raw]


class _Held(msgspec.Struct):
    resources: dict[str, int]


class _Consumer(msgspec.Struct):
    allocations: dict[str, _Held]
    project_id: str = ""
    user_id: str = ""
    consumer_generation: int | None = None
    consumer_type: str = _UNKNOWN_TYPE


class TreeCalls:
    def __init__(self, link: Link, body: ClaimBody) -> None:
        self._link = link
        self._body = body

    def tree(self, root_uuid: str) -> list[TreeProvider]:
        answer = self._link.get("/resource_providers", [("in_tree", root_uuid)])
        return [self._provider(each) for each in decoded(expect(answer, 200), _Listing).resource_providers]

    def _provider(self, listed: _Listed) -> TreeProvider:
        answer = self._link.get(f"/resource_providers/{listed.uuid}/inventories")
        found = decoded(expect(answer, 200), _Inventories)
        return TreeProvider(
            listed.uuid,
            listed.name,
            found.resource_provider_generation,
            listed.parent_provider_uuid,
            found.inventories,
        )

    def usage(self, root_uuid: str) -> TreeUsage | None:
        """None if there is no such tree."""
        capacity: Counter[str] = Counter()
        used: Counter[str] = Counter()
        found = self.tree(root_uuid)
        for provider in found:
            capacity.update({name: one.capacity for name, one in provider.inventories.items()})
            answer = self._link.get(f"/resource_providers/{provider.uuid}/usages")
            used.update(decoded(expect(answer, 200), _Usages).usages)
        return TreeUsage(dict(capacity), dict(used)) if found else None

    def consumers(self, provider_uuids: Collection[str]) -> list[ConsumerClaim]:
        uuids: dict[str, None] = {}
        for provider_uuid in provider_uuids:
            answer = self._link.get(f"/resource_providers/{provider_uuid}/allocations")
            uuids |= dict.fromkeys(decoded(expect(answer, 200), _Users).allocations)
        return [claim for uuid in uuids if (claim := self._consumer(uuid)).allocations]

    def _consumer(self, uuid: str) -> ConsumerClaim:
        found = decoded(expect(self._link.get(f"/allocations/{uuid}"), 200), _Consumer)
        return ConsumerClaim(
            consumer_uuid=uuid,
            allocations={provider: held.resources for provider, held in found.allocations.items()},
            project_id=found.project_id,
            user_id=found.user_id,
            consumer_type=_KNOWN_TYPE if found.consumer_type == _UNKNOWN_TYPE else found.consumer_type,
            consumer_generation=found.consumer_generation,
        )

    def reshape(self, providers: Sequence[TreeProvider], claims: Sequence[ConsumerClaim]) -> None:
        """A late one is refused: it names the generations of all that it changes."""
        body = {
            "inventories": {
                provider.uuid: {
                    "resource_provider_generation": provider.generation,
                    "inventories": provider.inventories,
                }
                for provider in providers
            },
            "allocations": {claim.consumer_uuid: self._body(claim) for claim in claims},
        }
        expect(self._link.send("POST", "/reshaper", body), 204)
