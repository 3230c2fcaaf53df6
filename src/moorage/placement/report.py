"""Reports: the wished-for state of many providers at once, of which only what differs is written.

A fleet of 100,000 nodes says the same again and again. So a report is first held against the picture in
memory, which costs no lock and no write; what seems to differ is compared again under lock, in one
transaction for the whole report, and written in a few bulk statements (`placement/store/reports.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta
from sqlalchemy.engine import Connection

from moorage.core.nul import NUL, REFUSAL
from moorage.placement.errors import PlacementError
from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.record import InventoryRecord
from moorage.placement.store import snapshot
from moorage.placement.store.inventories import MAX_INT

_Name = Annotated[str, Meta(pattern=r"^[A-Z0-9_]{1,255}$")]
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_Positive = Annotated[int, Meta(ge=1, le=MAX_INT)]


class ReportRefused(PlacementError):
    """A report that makes no sense, whatever the state is."""


class InventoryReport(msgspec.Struct, forbid_unknown_fields=True):
    total: _Positive
    reserved: Annotated[int, Meta(ge=0, le=MAX_INT)] = 0
    min_unit: _Positive = 1
    max_unit: _Positive = MAX_INT
    step_size: _Positive = 1
    allocation_ratio: Annotated[float, Meta(gt=0, le=3.4e38)] = 1.0

    def as_tuple(self) -> tuple[int, int, int, int, int, float]:
        return (
            self.total,
            self.reserved,
            self.min_unit,
            self.max_unit,
            self.step_size,
            self.allocation_ratio,
        )


class ProviderReport(msgspec.Struct, forbid_unknown_fields=True):
    """What one provider shall be; what is left out stays as it is."""

    uuid: str
    name: Annotated[str, Meta(min_length=1, max_length=200)]
    parent_provider_uuid: str | msgspec.UnsetType | None = msgspec.UNSET
    inventories: dict[_Name, InventoryReport] | None = None
    traits: list[_Name] | None = None
    add_traits: list[_Name] | None = None
    """For a reporter that knows only its own traits: others that the provider has stay."""
    remove_traits: list[_Name] | None = None
    aggregates: list[str] | None = None


class Report(msgspec.Struct, forbid_unknown_fields=True):
    providers: Annotated[list[ProviderReport], Meta(max_length=20_000)]


def check(report: Report) -> None:
    """Refuse what no state could make right."""
    seen: set[str] = set()
    for provider in report.providers:
        related = [provider.uuid, *(provider.aggregates or ())]
        if isinstance(provider.parent_provider_uuid, str):
            related.append(provider.parent_provider_uuid)
        for uuid in related:
            if not _UUID.fullmatch(uuid):
                raise ReportRefused(f"'{uuid}' is not a UUID with dashes and small letters")
        if provider.uuid in seen:
            raise ReportRefused(f"provider {provider.uuid} is reported twice")
        seen.add(provider.uuid)
        _check_traits(provider)
        if NUL in provider.name:
            raise ReportRefused(REFUSAL)
        for name, inventory in (provider.inventories or {}).items():
            if inventory.reserved > inventory.total:
                raise ReportRefused(f"provider {provider.uuid} reserves more {name} than it has")


def _check_traits(provider: ProviderReport) -> None:
    if provider.add_traits is None and provider.remove_traits is None:
        return
    if provider.traits is not None:
        raise ReportRefused(
            f"provider {provider.uuid} has traits as well as changes of them: say only the one"
        )
    both = set(provider.add_traits or ()).intersection(provider.remove_traits or ())
    if both:
        raise ReportRefused(f"provider {provider.uuid} shall get and lose {', '.join(sorted(both))}")


def seems_changed(
    connection: Connection, fleet: Fleet, reports: Sequence[ProviderReport]
) -> list[ProviderReport]:
    """Those that the picture in memory does not already show as reported."""
    slots = {report.uuid: fleet.slot_of_uuid(report.uuid) for report in reports}
    ids = [fleet.ids[slot] for slot in slots.values() if slot is not None]
    stored = snapshot.read_inventories(connection, ids)
    changed = []
    for report in reports:
        slot = slots[report.uuid]
        if slot is None or not _shows(fleet, slot, report, stored.get(fleet.ids[slot], ())):
            changed.append(report)
    return changed


def _shows(fleet: Fleet, slot: int, report: ProviderReport, stored: Iterable[InventoryRecord]) -> bool:
    if report.name != fleet.provider_names[slot]:
        return False
    if report.parent_provider_uuid is not msgspec.UNSET:
        parent = fleet.parent_of(slot)
        if report.parent_provider_uuid != (None if parent is None else fleet.uuids[parent]):
            return False
    if report.aggregates is not None and set(report.aggregates) != set(fleet.aggregates_of[slot]):
        return False
    if not _has_traits(fleet, slot, report):
        return False
    if report.inventories is None:
        return True
    held = {fleet.names.class_name(record.class_id): record[1:7] for record in stored}
    return held == {name: inventory.as_tuple() for name, inventory in report.inventories.items()}


def _has_traits(fleet: Fleet, slot: int, report: ProviderReport) -> bool:
    if report.traits is None and report.add_traits is None and report.remove_traits is None:
        return True
    known = {fleet.names.trait_name(trait_id) for trait_id in fleet.traits_of[slot]}
    if report.traits is not None:
        return known == set(report.traits)
    return known.issuperset(report.add_traits or ()) and known.isdisjoint(report.remove_traits or ())
