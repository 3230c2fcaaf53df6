"""A provider, or what is used of it, as SQL has it: how the fleet is loaded and kept current."""

from __future__ import annotations

from typing import NamedTuple


class InventoryRecord(NamedTuple):
    class_id: int
    total: int
    reserved: int
    min_unit: int
    max_unit: int
    step_size: int
    allocation_ratio: float
    used: int

    @property
    def capacity(self) -> int:
        return int((self.total - self.reserved) * self.allocation_ratio)


class ProviderRecord(NamedTuple):
    id: int
    uuid: str
    name: str
    generation: int
    parent_id: int | None
    root_id: int
    updated_at: float
    inventories: tuple[InventoryRecord, ...]
    trait_ids: tuple[int, ...]
    aggregates: tuple[str, ...]
    """UUIDs of the aggregates that the provider is in."""


class UsageRecord(NamedTuple):
    provider_id: int
    generation: int
    updated_at: float
    used: dict[int, int]
    """By resource class."""
