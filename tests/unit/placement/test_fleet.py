"""The fleet follows its records: whatever the way there, it equals one loaded afresh."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.placement.fleet.names import Names, UnknownClassError, UnknownTraitError
from moorage.placement.fleet.record import ProviderRecord
from moorage.placement.fleet.slotset import SlotSet
from tests.support.examples import examples
from tests.support.pictures import picture
from tests.unit.placement.fleets import (
    AGGREGATES,
    CLASS_IDS,
    CLASSES,
    fleet_of,
    fleets,
    inventory,
    provider,
    uuid,
)


@settings(max_examples=examples(300), deadline=None)
@given(fleets(), fleets(), st.integers(0, 3), st.data())
def test_any_change_leads_to_the_same_picture_as_a_fresh_load(
    before: list[ProviderRecord], after: list[ProviderRecord], newcomers: int, data: st.DataObject
) -> None:
    """From one random fleet to another, with unrelated trees, in any order of records.

    The later fleet is numbered from a little higher on, so that some go, others come in their places, and
    those that stay have other roots there.
    """
    after = [renumbered(record, newcomers) for record in after]
    fleet = fleet_of(before)
    gone = {record.id for record in before} - {record.id for record in after}
    changes = data.draw(st.permutations(after))
    fleet.apply(changes, gone)
    assert picture(fleet) == picture(fleet_of(after))
    for record in before:
        if record.id in gone:
            assert fleet.slot_of_id(record.id) is None
            assert fleet.slot_of_uuid(record.uuid) is None
            assert fleet.slot_of_name(record.name) is None


def renumbered(record: ProviderRecord, by: int) -> ProviderRecord:
    number = record.id + by
    return record._replace(
        id=number,
        uuid=uuid(number),
        name=f"provider-{number}",
        parent_id=None if record.parent_id is None else record.parent_id + by,
        root_id=record.root_id + by,
    )


def test_another_provider_with_the_same_number_is_taken_over_whole() -> None:
    """No database of ours gives a number twice, but one that was put back from a backup may."""
    old = provider(1, {"VCPU": 4}, ["CUSTOM_RED"], AGGREGATES)
    new = provider(1, {"DISK_GB": 5}, ["CUSTOM_BLUE"])._replace(uuid=uuid(7), name="provider-7")
    fleet = fleet_of([old, provider(2)])
    fleet.apply([new])
    assert picture(fleet) == picture(fleet_of([new, provider(2)]))
    assert fleet.slot_of_uuid(old.uuid) is None
    assert fleet.slot_of_name(old.name) is None


@settings(max_examples=examples(200), deadline=None)
@given(fleets(), st.data())
def test_a_usage_update_is_the_same_as_the_changed_record(
    records: list[ProviderRecord], data: st.DataObject
) -> None:
    number = data.draw(st.integers(0, len(records) - 1))
    record = records[number]
    used = {stock.class_id: data.draw(st.integers(0, 9)) for stock in record.inventories}
    fleet = fleet_of(records)
    structure = fleet.structure
    fleet.update_usage(record.id, 7, 7.0, used)
    stocks = tuple(stock._replace(used=used[stock.class_id]) for stock in record.inventories)
    changed = record._replace(generation=7, updated_at=7.0, inventories=stocks)
    assert picture(fleet) == picture(fleet_of([*records[:number], changed, *records[number + 1 :]]))
    assert fleet.structure == structure


def test_every_change_of_a_provider_gives_it_a_new_stamp() -> None:
    fleet = fleet_of([provider(1, {"VCPU": 4}), provider(2)])
    stamps = {tuple(fleet.stamps)}
    fleet.update_usage(1, 1, 1.0, {CLASS_IDS["VCPU"]: 1})
    stamps.add(tuple(fleet.stamps))
    fleet.apply([provider(1, {"VCPU": 5})])
    stamps.add(tuple(fleet.stamps))
    fleet.apply([], gone=[1])
    fleet.apply([provider(3)])
    stamps.add(tuple(fleet.stamps))
    assert len(stamps) == 4
    assert len({stamp[1] for stamp in stamps}) == 1


def test_a_removed_providers_slot_is_used_again() -> None:
    fleet = fleet_of([provider(1, {"VCPU": 4}, ["CUSTOM_RED"], AGGREGATES), provider(2)])
    slot = fleet.slot_of_uuid(uuid(1))
    assert slot is not None
    fleet.apply([], gone=[1, 99])
    assert fleet.slot_of_uuid(uuid(1)) is None
    assert fleet.slot_of_id(1) is None
    fleet.apply([provider(3)])
    assert fleet.slot_of_uuid(uuid(3)) == slot
    assert (fleet.inventory(slot), fleet.traits_of[slot], fleet.aggregates_of[slot]) == ({}, (), ())


def test_a_provider_may_be_renamed_and_another_take_its_name() -> None:
    fleet = fleet_of([provider(1), provider(2)])
    fleet.apply([provider(2)._replace(name="provider-1"), provider(1)._replace(name="provider-2")])
    assert fleet.slot_of_name("provider-1") == fleet.slot_of_uuid(uuid(2))
    assert fleet.slot_of_name("provider-2") == fleet.slot_of_uuid(uuid(1))


def test_a_provider_created_anew_is_not_lost_with_the_old_one() -> None:
    fleet = fleet_of([provider(1)])
    fleet.apply([provider(1)._replace(id=2, root_id=2)], gone=[1])
    slot = fleet.slot_of_uuid(uuid(1))
    assert slot is not None
    assert fleet.ids[slot] == 2
    assert fleet.slot_of_name("provider-1") == slot


def test_a_fleet_is_loaded_once() -> None:
    fleet = fleet_of([provider(1)])
    with pytest.raises(ValueError, match="loaded once"):
        fleet.load([provider(2)])


def test_an_absurd_ratio_is_plenty_rather_than_an_overflow() -> None:
    stock = inventory(2**31 - 1, allocation_ratio=3e38)
    loaded, applied = fleet_of([provider(1, {"VCPU": stock})]), fleet_of([])
    applied.apply([provider(1, {"VCPU": stock})])
    for fleet in (loaded, applied):
        ((capacity, _),) = fleet.inventory(0).values()
        assert capacity == 2**62


def test_names_are_known_both_ways_and_unknown_ones_carried() -> None:
    names = Names()
    names.set_classes(CLASSES)
    assert (names.class_id("VCPU"), names.class_name(0)) == (0, "VCPU")
    with pytest.raises(UnknownClassError) as unknown:
        names.class_id("CUSTOM_NONE")
    assert unknown.value.name == "CUSTOM_NONE"
    with pytest.raises(UnknownTraitError):
        names.trait_id("CUSTOM_NONE")
    assert names.sharing_trait_id is None


def test_only_a_lost_or_changed_name_counts_as_a_rename() -> None:
    names = Names()
    names.set_classes({1: "VCPU"})
    names.set_classes({1: "VCPU", 2: "CUSTOM_NEW"})
    assert names.renames == 0
    names.set_classes({1: "VCPU", 2: "CUSTOM_RENAMED"})
    assert names.renames == 1


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3000)), max_size=60), st.booleans())
def test_a_slot_set_is_a_set_whether_sparse_or_dense(steps: list[tuple[bool, int]], dense: bool) -> None:
    start = list(range(0, 2000, 3)) if dense else [5, 1]
    slots, expected = SlotSet(), set(start)
    slots.add_many(start)
    for added, slot in steps:
        (slots.add if added else slots.discard)(slot)
        (expected.add if added else expected.discard)(slot)
    assert slots.slots().tolist() == sorted(expected)
    assert len(slots) == len(expected)
    for size in (3001, 4096):
        assert [slot for slot, member in enumerate(slots.mask(size)) if member] == sorted(expected)


def test_a_set_grows_into_a_bitset() -> None:
    slots = SlotSet()
    for slot in range(0, 4000, 2):
        slots.add(slot)
    assert slots.slots().tolist() == list(range(0, 4000, 2))
