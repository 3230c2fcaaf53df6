"""The engine and the oracle agree on every small fleet and request."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.record import ProviderRecord
from moorage.placement.search import plan
from moorage.placement.search.candidates import find_candidates
from moorage.placement.search.request import SearchRequest
from moorage.placement.search.result import SearchOptions, SearchResult, Strategy, TreeOrder
from tests.support.examples import examples
from tests.unit.placement.fleets import fleet_of, fleets
from tests.unit.placement.oracle import Answer, Oracle
from tests.unit.placement.requests import requests

UNBOUNDED = SearchOptions(max_candidates=None, max_steps=None)
EVERY_OPTION = st.builds(
    SearchOptions,
    order=st.sampled_from(TreeOrder),
    strategy=st.sampled_from(Strategy),
    max_candidates=st.just(None),
    max_steps=st.just(None),
)


def answers(fleet: Fleet, result: SearchResult) -> list[Answer]:
    return [
        (
            frozenset(
                (fleet.uuids[slot], name, amount)
                for slot, resources in candidate.allocations.items()
                for name, amount in resources.items()
            ),
            frozenset(
                (suffix, frozenset(fleet.uuids[slot] for slot in slots))
                for suffix, slots in candidate.mappings.items()
            ),
        )
        for candidate in result.candidates
    ]


@settings(max_examples=examples(600), deadline=None)
@given(fleets(), requests(), EVERY_OPTION)
def test_candidates_are_the_oracles(
    records: list[ProviderRecord], request: SearchRequest, options: SearchOptions
) -> None:
    fleet = fleet_of(records)
    result = find_candidates(fleet, request, options)
    found = answers(fleet, result)
    event(f"{min(len(found), 3)} candidates or more")
    assert len(found) == len(set(found))
    assert set(found) == Oracle(records).answers(request)
    assert not result.cut_short


@settings(max_examples=examples(300), deadline=None)
@given(fleets(), requests())
def test_a_narrowed_view_gives_what_the_whole_fleet_gives(
    records: list[ProviderRecord], request: SearchRequest
) -> None:
    fleet = fleet_of(records)
    narrow = find_candidates(fleet, request, UNBOUNDED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "NARROW_LIMIT", -1)
        whole = find_candidates(fleet, request, UNBOUNDED)
    assert set(answers(fleet, narrow)) == set(answers(fleet, whole))
