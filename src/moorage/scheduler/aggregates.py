"""What the metadata of host aggregates says about scheduling: zones, isolation, images, ratios."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

ZONE = "availability_zone"
PROJECTS = "filter_tenant_id"
"""The beginning of the keys whose values are projects, separated by commas."""
TRAIT = "trait:"
RATIOS = {
    "VCPU": "cpu_allocation_ratio",
    "MEMORY_MB": "ram_allocation_ratio",
    "DISK_GB": "disk_allocation_ratio",
}
"""By resource class, the key of its allocation ratio."""

Ratios = Mapping[str, float]
"""Allocation ratios by resource class."""


class Grouped(Protocol):
    """An aggregate, as far as it matters here."""

    @property
    def uuid(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def metadata(self) -> Mapping[str, str]: ...

    @property
    def hosts(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class AggregateFacts:
    """All aggregates, sorted out by what they are asked about."""

    zones: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By zone: the aggregates that carry its name."""
    zone_of: Mapping[str, str] = field(default_factory=dict)
    """By host; those that no aggregate gives a zone are missing."""
    of_host: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By host: all aggregates that it is in."""
    projects: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By project: the aggregates that are set apart for it."""
    traits: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By aggregate: the traits without which a server must stay out."""
    images: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    """By aggregate: its keys that images may have as properties, and the values that it takes."""
    ratios: Mapping[str, Ratios] = field(default_factory=dict)
    """By host: what its aggregates say, the lowest if they differ."""
    problems: tuple[str, ...] = ()
    """What makes no sense and is left out, in words for the operator."""

    @classmethod
    def of(cls, aggregates: Iterable[Grouped]) -> AggregateFacts:
        sorted_out = _Sorting()
        for aggregate in aggregates:
            sorted_out.take(aggregate)
        return cls(
            zones=_frozen(sorted_out.zones),
            zone_of=sorted_out.zone_of,
            of_host=_frozen(sorted_out.of_host),
            projects=_frozen(sorted_out.projects),
            traits=sorted_out.traits,
            images=sorted_out.images,
            ratios=sorted_out.ratios,
            problems=tuple(sorted_out.problems),
        )


class _Sorting:
    def __init__(self) -> None:
        self.zones: dict[str, set[str]] = {}
        self.zone_of: dict[str, str] = {}
        self.of_host: dict[str, set[str]] = {}
        self.projects: dict[str, set[str]] = {}
        self.traits: dict[str, frozenset[str]] = {}
        self.images: dict[str, dict[str, frozenset[str]]] = {}
        self.ratios: dict[str, dict[str, float]] = {}
        self.problems: list[str] = []

    def take(self, aggregate: Grouped) -> None:
        uuid, metadata = aggregate.uuid, aggregate.metadata
        for host in aggregate.hosts:
            self.of_host.setdefault(host, set()).add(uuid)
        zone = metadata.get(ZONE)
        if zone:
            self.zones.setdefault(zone, set()).add(uuid)
            for host in aggregate.hosts:
                self.zone_of.setdefault(host, zone)
        for key, value in metadata.items():
            if key.startswith(PROJECTS):
                for project in _values(value):
                    self.projects.setdefault(project, set()).add(uuid)
        traits = frozenset(
            key.removeprefix(TRAIT)
            for key, value in metadata.items()
            if key.startswith(TRAIT) and value == "required"
        )
        if traits:
            self.traits[uuid] = traits
        images = {key: _values(value) for key, value in metadata.items() if _may_be_of_images(key)}
        if images:
            self.images[uuid] = images
        self._take_ratios(aggregate)

    def _take_ratios(self, aggregate: Grouped) -> None:
        said = {}
        for resource_class, key in RATIOS.items():
            if key in aggregate.metadata:
                ratio = _ratio(aggregate.metadata[key])
                if ratio is None:
                    self.problems.append(
                        f"aggregate {aggregate.name}: {key} must be a number above 0, "
                        f"not '{aggregate.metadata[key]}'"
                    )
                else:
                    said[resource_class] = ratio
        for host in aggregate.hosts if said else ():
            held = self.ratios.setdefault(host, {})
            for resource_class, ratio in said.items():
                held[resource_class] = min(ratio, held.get(resource_class, ratio))


def _may_be_of_images(key: str) -> bool:
    return key != ZONE and key not in RATIOS.values() and not key.startswith((PROJECTS, TRAIT))


def _values(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def _ratio(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def _frozen(sets: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    return {key: frozenset(values) for key, values in sets.items()}
