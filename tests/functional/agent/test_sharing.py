"""The aggregates in which hosts share something: joined, left, and nothing else touched."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from moorage.agent.journal import Journal
from moorage.agent.sharing import Sharing
from moorage.agent.tracker import Tracker
from moorage.core import uuids
from moorage.drivers.contract import Inventory, Node
from moorage.placement.client.contract import ProviderAggregates
from tests.functional.agent.conftest import Placement

ONE, OTHER, OPERATORS = (uuids.generate() for _ in range(3))
NODE = Node(uuids.generate(), "host", "test", {"CUSTOM_SEAT": Inventory(total=1)}, shared_through=ONE)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.sqlite")


def through(aggregate: str) -> list[Node]:
    return [msgspec.structs.replace(NODE, shared_through=aggregate)]


def held(placement: Placement) -> frozenset[str]:
    return placement.aggregates([NODE.uuid])[NODE.uuid].aggregates


def test_a_node_joins_changes_and_leaves_and_stays_where_an_operator_put_it(
    placement: Placement, journal: Journal
) -> None:
    sharing = Sharing(placement, journal)
    assert not sharing.settle([NODE]), "Placement does not know it yet"
    Tracker(placement, journal).report([NODE])
    assert sharing.settle([NODE])
    assert held(placement) == {ONE}
    found = placement.aggregates([NODE.uuid])[NODE.uuid]
    placement.set_aggregates([ProviderAggregates(NODE.uuid, found.generation, frozenset({ONE, OPERATORS}))])
    assert sharing.settle(through(OTHER))
    assert held(placement) == {OTHER, OPERATORS}
    restarted = Sharing(placement, journal)
    assert restarted.settle(through(""))
    assert held(placement) == {OPERATORS}


def test_what_somebody_took_away_comes_back_after_a_while(placement: Placement, journal: Journal) -> None:
    Tracker(placement, journal).report([NODE])
    sharing = Sharing(placement, journal)
    assert sharing.settle([NODE])
    found = placement.aggregates([NODE.uuid])[NODE.uuid]
    placement.set_aggregates([ProviderAggregates(NODE.uuid, found.generation, frozenset())])
    assert sharing.settle([NODE])
    assert held(placement) == set(), "nobody looks all the time"
    sharing.forget()
    assert sharing.settle([NODE])
    assert held(placement) == {ONE}


def test_a_node_that_shares_nothing_costs_nothing(placement: Placement, journal: Journal) -> None:
    """Not even that Placement knows it."""
    assert Sharing(placement, journal).settle(through(""))
