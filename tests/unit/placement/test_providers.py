"""Listing providers: each condition on one provider, alone and together."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.placement.fleet.names import UnknownClassError, UnknownTraitError
from moorage.placement.fleet.record import ProviderRecord
from moorage.placement.search.providers import ProviderFilters, find_providers
from moorage.placement.search.request import RequestGroup
from tests.support.examples import examples
from tests.unit.placement.fleets import fleet_of, fleets, provider, uuid
from tests.unit.placement.oracle import Oracle
from tests.unit.placement.requests import groups, rarely


@st.composite
def filters(draw: st.DrawFn) -> ProviderFilters:
    number = draw(st.integers(1, 8))
    return ProviderFilters(
        group=draw(groups("_A", draw(st.booleans()))),
        uuid=uuid(number) if draw(rarely()) else None,
        name=f"provider-{number}" if draw(rarely()) else None,
    )


@settings(max_examples=examples(400), deadline=None)
@given(fleets(), filters())
def test_providers_are_those_that_meet_every_condition(
    records: list[ProviderRecord], asked: ProviderFilters
) -> None:
    fleet, oracle = fleet_of(records), Oracle(records)
    tree = oracle.by_uuid.get(asked.group.in_tree or "")
    expected = {
        record.uuid
        for record in records
        if oracle.meets(record, asked.group)
        and (asked.group.in_tree is None or (tree is not None and record.root_id == tree.root_id))
        and asked.uuid in (None, record.uuid)
        and asked.name in (None, record.name)
    }
    assert [fleet.uuids[slot] for slot in find_providers(fleet, asked)] == sorted(expected)


def test_no_conditions_mean_every_provider_that_is_left() -> None:
    fleet = fleet_of([provider(1), provider(2), provider(3)])
    fleet.apply([], gone=[2])
    assert [fleet.uuids[slot] for slot in find_providers(fleet, ProviderFilters())] == [uuid(1), uuid(3)]


def test_unknown_names_are_told_apart_from_no_match() -> None:
    fleet = fleet_of([provider(1)])
    with pytest.raises(UnknownClassError, match="CUSTOM_NONE"):
        find_providers(fleet, ProviderFilters(RequestGroup(resources={"CUSTOM_NONE": 1})))
    with pytest.raises(UnknownTraitError, match="CUSTOM_NONE"):
        find_providers(fleet, ProviderFilters(RequestGroup(forbidden_traits=frozenset({"CUSTOM_NONE"}))))
    assert find_providers(fleet, ProviderFilters(uuid=uuid(9))) == []
