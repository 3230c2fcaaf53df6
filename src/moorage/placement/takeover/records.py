"""What Placement holds, in whole records: as its API shows it, and without anybody's ids."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

import msgspec

BATCH = 1000
"""Records that are held, and written, at a time."""


class WholeInventory(NamedTuple):
    resource_class: str
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    changed_at: datetime


class WholeProvider(NamedTuple):
    """With all that it has; sorted, so that two that are the same look the same."""

    uuid: str
    name: str
    generation: int
    parent: str | None
    root: str
    inventories: list[WholeInventory]
    traits: list[str]
    aggregates: list[str]
    changed_at: datetime


class WholeAllocation(NamedTuple):
    provider: str
    resource_class: str
    used: int
    changed_at: datetime


class WholeConsumer(NamedTuple):
    """With all that it holds, which is something: a consumer of nothing is nobody."""

    uuid: str
    project_id: str
    user_id: str
    generation: int
    type: str | None
    """None for those whose type nobody has said."""
    allocations: list[WholeAllocation]


class NameTables(NamedTuple):
    """Standard and custom names, each with the moment of its last change."""

    classes: dict[str, datetime]
    traits: dict[str, datetime]
    types: list[str]


class Counts(msgspec.Struct, frozen=True):
    """How much there is of everything; of names, only those that somebody made."""

    providers: int
    inventories: int
    provider_traits: int
    provider_aggregates: int
    consumers: int
    allocations: int
    custom_classes: int
    custom_traits: int

    @property
    def is_empty(self) -> bool:
        return not (self.providers or self.consumers or self.allocations)


class Contents(Protocol):
    """One side, as of one moment. Only one of its iterators is used at a time, and to its end."""

    def counts(self) -> Counts: ...

    def names(self) -> NameTables: ...

    def provider_uuids(self) -> list[str]: ...

    def providers(self) -> Iterator[list[WholeProvider]]:
        """In batches, in no order."""
        ...

    def consumers(self) -> Iterator[list[WholeConsumer]]:
        """In batches, in no order."""
        ...


def moment(*found: datetime | None) -> datetime:
    """The first that is there, in UTC, which the reference's tables don't say but mean."""
    for one in found:
        if one is not None:
            return one.replace(tzinfo=UTC) if one.tzinfo is None else one.astimezone(UTC)
    return datetime.now(UTC)
