"""All that a fleet knows, in a form that two fleets can be compared by."""

from __future__ import annotations

from typing import Any

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.view import WholeView

_COLUMNS = ("capacity", "used", "min_unit", "max_unit", "step_size")


def picture(fleet: Fleet) -> dict[str, Any]:
    """By UUID: slots, rows and stamps are a fleet's own business."""
    uuids, topology = fleet.uuids, fleet.topology
    view = WholeView(fleet)
    rows = {class_id: view.rows(class_id) for class_id, column in fleet.columns.items() if len(column)}
    return {
        "providers": {uuids[slot]: _provider(fleet, slot) for slot in fleet.slots()},
        "columns": {
            class_id: {
                uuids[slot]: amounts
                for slot, *amounts in zip(
                    held.where.tolist(), *(getattr(held, name).tolist() for name in _COLUMNS), strict=True
                )
            }
            for class_id, held in rows.items()
        },
        "uniform": {class_id: held.uniform for class_id, held in rows.items()},
        "traits": {key: _members(fleet, held.slots().tolist()) for key, held in fleet.traits.items()},
        "aggregates": {key: _members(fleet, held.slots().tolist()) for key, held in fleet.aggregates.items()},
        "roots": {uuids[slot] for slot in fleet.slots() if topology.roots[slot]},
        "lone": {uuids[slot] for slot in fleet.slots() if topology.lone[slot]},
        "empty slots with a root": [
            slot for slot in set(range(fleet.size)).difference(fleet.slots()) if topology.roots[slot]
        ],
        "sharers": {uuids[slot] for slot in topology.sharers},
        "trees": {uuids[root] for root in fleet.trees()},
        "has_trees": fleet.has_trees,
        "size": len(fleet),
    }


def _provider(fleet: Fleet, slot: int) -> dict[str, Any]:
    uuids, parent, root = fleet.uuids, fleet.parent_of(slot), fleet.root_of(slot)
    return {
        "id": fleet.ids[slot],
        "name": fleet.provider_names[slot],
        "generation": fleet.generations[slot],
        "updated_at": fleet.updated_at[slot],
        "parent": None if parent is None else uuids[parent],
        "root": uuids[root],
        "inventory": fleet.inventory(slot),
        "traits": sorted(fleet.traits_of[slot]),
        "aggregates": sorted(fleet.aggregates_of[slot]),
        "tree": _members(fleet, fleet.tree(root)),
        "reach": sorted(uuids[reached] for reached in fleet.topology.reach(slot).tolist()),
        "found by": {
            "id": fleet.slot_of_id(fleet.ids[slot]) == slot,
            "uuid": fleet.slot_of_uuid(uuids[slot]) == slot,
            "name": fleet.slot_of_name(fleet.provider_names[slot]) == slot,
        },
    }


def _members(fleet: Fleet, slots: Any) -> list[str]:
    return sorted(fleet.uuids[slot] for slot in slots)
