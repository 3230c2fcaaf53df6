"""Filters and weighers see of a request just what tells the requests apart that share a ranking."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from moorage.scheduler.board import Board
from moorage.scheduler.criteria import Criteria, ImageNeeds
from moorage.scheduler.groups import RequestGroup
from moorage.scheduler.hosts import HostState
from moorage.scheduler.narrowing import NarrowedBy, Narrowing
from moorage.scheduler.option import HostOption
from moorage.scheduler.ranking import Ranking, kind_of
from moorage.scheduler.request import Request
from moorage.scheduler.select import Selector
from moorage.scheduler.server_group import ServerGroupPolicy, ServerGroupState
from moorage.scheduler.settings import SchedulerSettings
from tests.unit.scheduler.clouds import Node, cloud, host, request, uuid

OTHERS: dict[str, Any] = {
    "groups": (RequestGroup(resources={"VCPU": 99}),),
    "host": "host-1",
    "leaves": "host-2",
    "may_stay_on": uuid(1),
    "cell": "east",
    "image": ImageNeeds(architecture="aarch64"),
    "server_group": ServerGroupState(uuid(7), ServerGroupPolicy.AFFINITY),
    "same_nodes": frozenset({uuid(1)}),
    "different_nodes": frozenset({uuid(1)}),
    "tried_nodes": frozenset({uuid(1)}),
    "failed_hosts": frozenset({"host-1"}),
    "full_cells": frozenset({"east"}),
    "narrowings": (Narrowing(NarrowedBy.ZONE, "in:abc", "east"),),
}
HIDDEN = sorted({field.name for field in fields(Request)} - {field.name for field in fields(Criteria)})


@pytest.mark.parametrize("name", [field.name for field in fields(Criteria)])
def test_requests_that_differ_in_what_filters_see_are_of_different_kinds(name: str) -> None:
    """A new field needs another value in OTHERS, and then is told apart by itself."""
    assert kind_of(request(1)) != kind_of(replace(request(1), **{name: OTHERS[name]}))


def test_requests_that_differ_in_nothing_else_are_of_one_kind() -> None:
    one, other = kind_of(request(1)), kind_of(replace(request(2), project_id="another", zone="west"))
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize("name", HIDDEN)
def test_what_a_kind_does_not_tell_is_not_there_to_be_read(name: str) -> None:
    found, board = cloud([Node(host(1))])
    with pytest.raises(AttributeError, match=name):
        Ranking(request(1), found, board, [_Reading(name)], [])
    with pytest.raises(AttributeError, match=name):
        Ranking(request(1), found, board, [], [_Reading(name)])


class _Reading:
    """A filter and a weigher that goes by one field of a request."""

    multiplier = 1.0
    lowest = None

    def __init__(self, name: str) -> None:
        self.name = name

    def applies(self, request: Criteria) -> bool:
        return True

    def objection(self, _host: HostState, request: Criteria) -> None:
        getattr(request, self.name)

    def weigh(self, _option: HostOption, request: Criteria) -> float:
        return float(bool(getattr(request, self.name)))


def test_no_two_filters_or_weighers_have_one_name() -> None:
    settings = SchedulerSettings(max_servers_per_node=1, server_count_weight=1.0)
    for listed in (settings.filters(), settings.weighers()):
        names = [one.name for one in listed]
        assert len(names) == len(set(names))


def test_a_ranking_is_kept_for_a_kind_and_an_answer() -> None:
    found, _ = cloud([Node(host(1))])
    board = Board({uuid(1): host(1)})
    selector = Selector(SchedulerSettings())
    for server in range(3):
        selector.select(request(server), found, board)
    selector.select(replace(request(9), host="host-1"), found, board)
    assert len(board.rankings) == 2
