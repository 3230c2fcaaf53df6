"""The aggregates of many providers, the same through every client and at every service."""

from __future__ import annotations

import pytest

from moorage.placement.client import membership_calls
from moorage.placement.client.contract import PlacementClient, ProviderAggregates
from tests.functional.placement.fleet import EAST, WEST, claim, node, node_uuid

NOWHERE = "dddddddd-dddd-4ddd-8ddd-dddddddddddd"
THREE = [node_uuid(number) for number in (1, 2, 3)]


@pytest.fixture
def fleet(client: PlacementClient) -> PlacementClient:
    client.report([node(1, aggregates=[EAST]), node(2, aggregates=[EAST, WEST]), node(3)])
    return client


def test_the_members_of_aggregates(fleet: PlacementClient) -> None:
    assert fleet.members([EAST, WEST, NOWHERE]) == {
        EAST: {node_uuid(1), node_uuid(2)},
        WEST: {node_uuid(2)},
        NOWHERE: set(),
    }
    assert fleet.members([]) == {}


def test_the_aggregates_of_providers(fleet: PlacementClient) -> None:
    found = fleet.aggregates([*THREE, node_uuid(99)])
    assert {uuid: one.aggregates for uuid, one in found.items()} == {
        node_uuid(1): {EAST},
        node_uuid(2): {EAST, WEST},
        node_uuid(3): set(),
    }
    assert fleet.aggregates([]) == {}


def test_each_is_set_on_its_own_merits(fleet: PlacementClient) -> None:
    found = fleet.aggregates(THREE)
    fleet.claim([claim(1, on=2)])  # a new generation, so what was read of it is old
    wanted = [ProviderAggregates(uuid, found[uuid].generation, frozenset({WEST})) for uuid in THREE]
    unknown = ProviderAggregates(node_uuid(99), 0, frozenset({WEST}))
    refused = fleet.set_aggregates([*wanted, unknown])
    assert {uuid: error.status for uuid, error in refused.items()} == {node_uuid(2): 409, node_uuid(99): 404}
    assert fleet.members([EAST, WEST]) == {EAST: {node_uuid(2)}, WEST: set(THREE)}
    again = fleet.set_aggregates(wanted)
    assert {error.status for error in again.values()} == {409}, "every write is a new generation"
    assert fleet.set_aggregates([]) == {}


def test_what_was_set_counts_in_searches(fleet: PlacementClient) -> None:
    (third,) = fleet.aggregates([node_uuid(3)]).values()
    assert fleet.set_aggregates([ProviderAggregates(third.uuid, third.generation, frozenset({EAST}))]) == {}
    found = fleet.candidates([("limit", "9"), ("resources", "VCPU:1"), ("member_of", EAST)])
    assert found.provider_summaries.keys() == set(THREE)


@pytest.mark.parametrize("client", ["session_to_moorage"], indirect=True)
def test_large_fleets_are_sent_in_portions(fleet: PlacementClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership_calls, "LARGEST", 2)
    found = fleet.aggregates(THREE)
    assert found.keys() == set(THREE)
    wanted = [ProviderAggregates(uuid, one.generation, frozenset({NOWHERE})) for uuid, one in found.items()]
    assert fleet.set_aggregates([*wanted, ProviderAggregates(node_uuid(99), 0, frozenset())]).keys() == {
        node_uuid(99)
    }
    assert fleet.members([NOWHERE]) == {NOWHERE: set(THREE)}
