"""How the rest of Moorage talks to Placement: the few questions and orders that it has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from moorage.placement.microversions import Microversion

MICROVERSION = Microversion.ANY_OF_TRAITS
"""What queries are written for."""
NODE_TRAIT = "COMPUTE_NODE"
"""What drivers say of every node."""


class PlacementUnavailableError(Exception):
    """Placement did not answer, or not in a way that makes sense; worth another try later."""


class PlacementDeniedError(PlacementUnavailableError):
    """Placement, or Keystone in front of it, does not let us in: an operator has to mend the credentials."""


class PlacementRefusedError(Exception):
    """Placement understood and said no; `status` and `detail` as it said it."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class ConsumerChangedError(PlacementRefusedError):
    """What a consumer holds is not any more what it was when the caller looked: somebody else is at it."""


class ProviderSummary(msgspec.Struct):
    resources: dict[str, dict[str, int]]
    """capacity and used, by resource class."""
    traits: list[str] = []
    parent_provider_uuid: str | None = None
    root_provider_uuid: str = ""


class AllocationRequest(msgspec.Struct):
    allocations: dict[str, dict[str, dict[str, int]]]
    mappings: dict[str, list[str]] = {}


class Candidates(msgspec.Struct):
    allocation_requests: list[AllocationRequest]
    provider_summaries: dict[str, ProviderSummary]


class ConsumerClaim(msgspec.Struct):
    """What a consumer shall hold; empty allocations release everything."""

    consumer_uuid: str
    allocations: dict[str, dict[str, int]]
    """Amounts by resource class, by the provider's UUID."""
    project_id: str
    user_id: str
    consumer_type: str = "INSTANCE"
    consumer_generation: int | None = None


class ReportedProvider(msgspec.Struct, omit_defaults=True):
    """The wished-for state of one provider; what is None stays as it is."""

    uuid: str
    name: str
    inventories: dict[str, dict[str, Any]] | None = None
    traits: list[str] | None = None
    """All that it has; instead, `add_traits` and `remove_traits` leave those alone that they don't name."""
    aggregates: list[str] | None = None
    parent_provider_uuid: str | None = None
    add_traits: list[str] | None = None
    remove_traits: list[str] | None = None


class ProviderInventory(msgspec.Struct, frozen=True):
    """An inventory as the API shows it; the defaults are the API's."""

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2_147_483_647
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        return int((self.total - self.reserved) * self.allocation_ratio)


class TreeProvider(msgspec.Struct, frozen=True):
    """A provider of a tree, at one generation of it."""

    uuid: str
    name: str
    generation: int
    parent_provider_uuid: str | None
    inventories: dict[str, ProviderInventory]


class TreeUsage(msgspec.Struct, frozen=True):
    """What a whole tree has, and what is used of it, by resource class."""

    capacity: dict[str, int]
    used: dict[str, int]


class ProviderAggregates(msgspec.Struct, frozen=True):
    """The aggregates that a provider is in, or shall be in, at one generation of it."""

    uuid: str
    generation: int
    aggregates: frozenset[str]


class Miscount(msgspec.Struct, frozen=True):
    """A counter of a provider that is not the sum of the allocations that it stands for."""

    provider_uuid: str
    resource_class: str
    counted: int
    allocated: int


Written = Callable[[str], None]
"""Gets the UUID of a provider that was changed; several threads may call it."""


def ignore(_uuid: str) -> None:
    """For who does not want to know."""


class PlacementClient(Protocol):
    def candidates(self, query: Sequence[tuple[str, str]]) -> Candidates:
        """`GET /allocation_candidates`; always with `limit` or `in_tree`."""

    def claim(self, claims: Sequence[ConsumerClaim]) -> list[PlacementRefusedError | None]:
        """Each on its own merits; for each None if it came true, else why not."""

    def claim_together(self, claims: Sequence[ConsumerClaim]) -> PlacementRefusedError | None:
        """All of them or none: None if they came true, else why not."""

    def release(self, consumer_uuids: Sequence[str]) -> None:
        """Drop all that these hold; those that hold nothing are fine."""

    def allocations(self, consumer_uuid: str) -> tuple[dict[str, dict[str, int]], int | None]:
        """What a consumer holds, and its generation (None if it holds nothing)."""

    def tree_has(self, provider_uuid: str, traits: Collection[str]) -> bool:
        """Whether some provider of that one's tree has all these traits, whatever is used of it."""

    def is_among(self, provider_uuid: str, member_of: Collection[str]) -> bool:
        """Whether that provider meets all these conditions on its aggregates (`in:…`, `!in:…`)."""

    def why(self, query: Sequence[tuple[str, str]]) -> Mapping[str, Any] | None:
        """What excluded the rest, with numbers; None if this Placement can't tell."""

    def report(self, providers: Sequence[ReportedProvider]) -> None:
        """Make providers what they are reported to be; unchanged ones cost nothing."""

    def tree(self, root_uuid: str) -> list[TreeProvider]:
        """All providers of a tree; none if it does not exist."""

    def tree_usages(self, root_uuids: Collection[str]) -> dict[str, TreeUsage]:
        """By the roots of those trees that exist."""

    def consumers(self, provider_uuids: Collection[str]) -> list[ConsumerClaim]:
        """Who holds anything of these providers, each with all that it holds anywhere."""

    def reshape(self, providers: Sequence[TreeProvider], claims: Sequence[ConsumerClaim]) -> None:
        """Make these the inventories of providers, and these the claims of consumers, in one transaction.

        Refused with 409 if a provider or a consumer is not any more at the generation that is named.
        """

    def nodes(self) -> set[str]:
        """The UUIDs of all providers that say that servers can be on them."""

    def miscounts(self, provider_uuid: str | None = None) -> list[Miscount]:
        """Counters that are wrong, of one provider or of all; none if the service is not ours."""

    def recount(self, provider_uuid: str) -> None:
        """Make the counters of a provider what they stand for."""

    def set_trait(self, provider_uuids: Collection[str], trait: str, *, present: bool) -> None:
        """Give these providers a trait, or take it away; those that don't exist stay so."""

    def delete_provider(self, uuid: str) -> None:
        """One that does not exist is fine; one that is in use is refused."""

    def members(self, aggregate_uuids: Collection[str]) -> dict[str, set[str]]:
        """The UUIDs of the providers in each of these aggregates."""

    def aggregates(self, provider_uuids: Collection[str]) -> dict[str, ProviderAggregates]:
        """By the UUIDs of those providers that exist."""

    def set_aggregates(
        self, wanted: Sequence[ProviderAggregates], written: Written = ignore
    ) -> dict[str, PlacementRefusedError]:
        """Each if the provider is still at that generation. By UUID, why some are as they were: 404, 409.

        `written` hears of each that is, also if others then end in an error.
        """
