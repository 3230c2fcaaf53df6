"""Single providers that meet some conditions: what listing resource providers asks for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.names import UnknownNameError
from moorage.placement.fleet.view import TreesView, WholeView
from moorage.placement.search.plan import check_names, meeting
from moorage.placement.search.request import RequestGroup, SearchRequest


@dataclass(frozen=True, slots=True)
class ProviderFilters:
    """Conditions that one provider must meet by itself; none of them means every provider."""

    group: RequestGroup = field(default_factory=RequestGroup)
    name: str | None = None
    uuid: str | None = None


def find_providers(fleet: Fleet, filters: ProviderFilters) -> list[int]:
    """The slots of the providers, ascending. An unknown class or trait name raises `UnknownNameError`."""
    try:
        check_names(fleet.names, SearchRequest((filters.group,)))
    except UnknownNameError as error:
        if _answered_before(fleet, filters.group, error.name):
            return []
        raise
    asked = [
        (filters.uuid, fleet.slot_of_uuid),
        (filters.name, fleet.slot_of_name),
        (filters.group.in_tree, fleet.slot_of_uuid),
    ]
    named = [slot_of(value) for value, slot_of in asked if value is not None]
    known = [slot for slot in named if slot is not None]
    if len(known) < len(named):
        return []
    roots = {fleet.root_of(slot) for slot in known}
    view = TreesView(fleet, roots) if roots else WholeView(fleet)
    met = meeting(view, filters.group) & (view.root >= 0)
    found = sorted(view.slots[place] for place in np.flatnonzero(met).tolist())
    return [
        slot
        for slot in found
        if filters.uuid in (None, fleet.uuids[slot])
        and filters.name in (None, fleet.provider_names[slot])
        and (not roots or fleet.root_of(slot) in roots)
    ]


def _answered_before(fleet: Fleet, group: RequestGroup, unknown: str) -> bool:
    """Whether a condition that comes before the unknown name leaves nobody.

    The order is the reference's, which answers with an empty list then: tree, required traits, forbidden
    traits, aggregates, resources.
    """
    if group.in_tree is not None and fleet.slot_of_uuid(group.in_tree) is None:
        return True
    if unknown in frozenset().union(*group.required_traits):
        return False
    if group.required_traits and not _anybody(fleet, RequestGroup(required_traits=group.required_traits)):
        return True
    if unknown in group.forbidden_traits:
        return False
    return bool(group.member_of) and not _anybody(fleet, RequestGroup(member_of=group.member_of))


def _anybody(fleet: Fleet, group: RequestGroup) -> bool:
    return bool(find_providers(fleet, ProviderFilters(group)))
