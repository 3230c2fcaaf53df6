"""A host that can't bind the ports of a server fails it on each of its nodes: its others come last."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from moorage.network.contract import Binding, NetworkError, PortRecord
from moorage.network.pool import PoolNetwork
from tests.functional.conductor.conftest import Make
from tests.functional.conductor.harbour import Harbour

NODES = 4
"""More than are tried for one server, on each host."""


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be bound at fake-1."""
    bind = PoolNetwork.bind

    def refuse(network: PoolNetwork, bindings: Sequence[Binding]) -> list[list[PortRecord] | NetworkError]:
        return [
            NetworkError("no agent there", retry_elsewhere=True)
            if binding.host == "fake-1"
            else bind(network, [binding])[0]
            for binding in bindings
        ]

    monkeypatch.setattr(PoolNetwork, "bind", refuse)


def tried(place: Harbour, uuid: str) -> list[str]:
    return [one["trace"]["chosen"]["host"] for one in place.traces(uuid) if one["trace"]["chosen"]]


def with_emptier_nodes_at_fake_1(harbour: Make, hosts: int, **options: object) -> Harbour:
    place = harbour(hosts=hosts, **{"fake.nodes": NODES, "fake.vcpus": 4, **options})
    for number in range(2, hosts + 1):
        place.running_many(NODES, host=f"fake-{number}", flavorRef="1")
    return place


@pytest.mark.parametrize("candidates", [20, 1])
def test_a_new_server_goes_to_another_host_next(harbour: Make, broken: None, candidates: int) -> None:
    """Also where Placement names nodes of the broken host only, until it is asked for more."""
    place = with_emptier_nodes_at_fake_1(harbour, 2, **{"scheduler.candidates": candidates})
    uuid = place.running()
    assert tried(place, uuid) == ["fake-1", "fake-2"]


def test_the_host_is_tried_again_if_there_is_no_other(harbour: Make, broken: None) -> None:
    place = with_emptier_nodes_at_fake_1(harbour, 2)
    place.set_service("fake-2", status="disabled")
    (uuid,) = place.cloud.boot()
    (server,) = place.cloud.await_status([uuid], "ERROR")
    assert "no agent there" in server["fault"]["message"]
    assert tried(place, uuid) == ["fake-1"] * 3


def test_a_server_that_moves_goes_to_another_host_next(harbour: Make, broken: None) -> None:
    place = with_emptier_nodes_at_fake_1(harbour, 3)
    uuid = place.running(host="fake-3")
    place.act(uuid, {"migrate": None})
    place.settled(uuid, "VERIFY_RESIZE")
    assert tried(place, uuid) == ["fake-3", "fake-1", "fake-2"]
