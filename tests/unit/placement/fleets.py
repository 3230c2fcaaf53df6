"""Small fleets for tests: built by hand with `provider`, or drawn at random with `fleets`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.names import SHARING_TRAIT
from moorage.placement.fleet.record import InventoryRecord, ProviderRecord

CLASSES = {0: "VCPU", 1: "MEMORY_MB", 2: "DISK_GB", 3: "SRIOV_NET_VF"}
TRAITS = {10: "CUSTOM_RED", 11: "CUSTOM_GREEN", 12: "CUSTOM_BLUE", 13: SHARING_TRAIT}
CLASS_IDS = {name: number for number, name in CLASSES.items()}
TRAIT_IDS = {name: number for number, name in TRAITS.items()}


def uuid(number: int) -> str:
    return str(UUID(int=number))


AGGREGATES = [uuid(1000 + number) for number in range(3)]


def inventory(total: int, used: int = 0, **more: Any) -> dict[str, Any]:
    return {"total": total, "used": used, **more}


def provider(
    number: int,
    inventories: Mapping[str, int | dict[str, Any]] | None = None,
    traits: Sequence[str] = (),
    aggregates: Sequence[str] = (),
    parent: int | None = None,
    root: int | None = None,
    generation: int = 0,
) -> ProviderRecord:
    """A record; `inventories` are totals, or dicts made by `inventory`."""
    rows = []
    for name, given in (inventories or {}).items():
        stock = {"total": given} if isinstance(given, int) else given
        rows.append(
            InventoryRecord(
                class_id=CLASS_IDS[name],
                total=stock["total"],
                reserved=stock.get("reserved", 0),
                min_unit=stock.get("min_unit", 1),
                max_unit=stock.get("max_unit", 2**31 - 1),
                step_size=stock.get("step_size", 1),
                allocation_ratio=stock.get("allocation_ratio", 1.0),
                used=stock.get("used", 0),
            )
        )
    return ProviderRecord(
        id=number,
        uuid=uuid(number),
        name=f"provider-{number}",
        generation=generation,
        parent_id=parent,
        root_id=number if root is None else root,
        updated_at=float(generation),
        inventories=tuple(rows),
        trait_ids=tuple(TRAIT_IDS[name] for name in traits),
        aggregates=tuple(aggregates),
    )


def fleet_of(records: Iterable[ProviderRecord]) -> Fleet:
    fleet = Fleet()
    fleet.names.set_classes(CLASSES)
    fleet.names.set_traits(TRAITS)
    fleet.load(records)
    return fleet


def inventories() -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    """Each class with its stock decoded from one number, which is quick to draw and shrinks to plenty."""
    return st.tuples(*(st.integers(0, 2**12 - 1) for _ in CLASS_IDS)).map(
        lambda codes: {
            name: _stock(code) for name, code in zip(CLASS_IDS, codes, strict=True) if code % 8 < 6
        }
    )


def _stock(code: int) -> dict[str, Any]:
    total = 8 - code // 8 % 8
    return {
        "total": total,
        "used": (0, 0, 1, total)[code // 64 % 4],
        "reserved": (0, 0, 0, 1)[code // 128 % 4],
        "max_unit": (8, 8, 3, 2)[code // 256 % 4],
        "allocation_ratio": (1.0, 1.5)[code // 512 % 2],
        "min_unit": (1, 1, 1, 2)[code // 1024 % 4],
        "step_size": (1, 1, 1, 2)[code // 1024 % 3],
    }


def some_of(values: Sequence[str]) -> st.SearchStrategy[list[str]]:
    """Any subset, from one draw."""
    return st.integers(0, 2 ** len(values) - 1).map(
        lambda bits: [value for number, value in enumerate(values) if bits >> number & 1]
    )


@st.composite
def fleets(draw: st.DrawFn, largest: int = 7) -> list[ProviderRecord]:
    """Providers in trees up to several levels deep, some of them sharing, some partly used."""
    records: list[ProviderRecord] = []
    for number in range(1, draw(st.integers(1, largest)) + 1):
        parent = draw(st.sampled_from([None, None, *records])) if records else None
        traits = draw(some_of(list(TRAIT_IDS)[:3]))
        if draw(st.integers(0, 4)) == 4:
            traits.append(SHARING_TRAIT)
        records.append(
            provider(
                number,
                draw(inventories()),
                traits,
                draw(some_of(AGGREGATES)),
                parent=None if parent is None else parent.id,
                root=None if parent is None else parent.root_id,
            )
        )
    return records
