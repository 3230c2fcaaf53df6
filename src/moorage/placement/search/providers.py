"""Single providers that meet some conditions: what listing resource providers asks for."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.view import TreesView, WholeView
from moorage.placement.search.plan import check_names, meeting
from moorage.placement.search.request import Request, RequestGroup


@dataclass(frozen=True, slots=True)
class ProviderFilters:
    """Conditions that one provider must meet by itself; none of them means every provider."""

    group: RequestGroup = field(default_factory=RequestGroup)
    name: str | None = None
    uuid: str | None = None


def find_providers(fleet: Fleet, filters: ProviderFilters) -> list[int]:
    """The slots of the providers, ascending. An unknown class or trait name raises `UnknownNameError`."""
    check_names(fleet.names, Request((filters.group,)))
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
