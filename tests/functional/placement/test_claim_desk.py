"""The claim desk: many requests at once, from one thread or several, each with its own outcome."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from moorage.placement.claims import MOST_TOGETHER
from moorage.placement.client.contract import PlacementClient
from tests.functional.placement.fleet import claim, node, node_uuid, server_uuid

VCPU = [("limit", "10"), ("resources", "VCPU:1")]


def used(client: PlacementClient, number: int) -> int:
    return client.candidates(VCPU).provider_summaries[node_uuid(number)].resources["VCPU"]["used"]


def test_more_than_fit_into_one_transaction(client: PlacementClient) -> None:
    count = 2 * MOST_TOGETHER + 3
    client.report([node(1, vcpus=count)])
    claims = [claim(number, on=1, vcpus=1) for number in range(count + 5)]
    for entry in claims:
        entry.allocations = {node_uuid(1): {"VCPU": 1}}
    outcomes = client.claim(claims)
    assert [error is None for error in outcomes] == [True] * count + [False] * 5


def test_nothing_to_do(client: PlacementClient) -> None:
    assert client.claim([]) == []
    client.report([node(1)])
    assert client.claim([claim(1, on=1)]) == [None]


def test_one_consumer_twice_in_one_go_waits_its_turn(client: PlacementClient) -> None:
    client.report([node(1)])
    outcomes = client.claim([claim(1, on=1), claim(2, on=1), claim(1, on=1, vcpus=1)])
    assert [error and error.status for error in outcomes] == [None, None, 409]
    assert used(client, 1) == 4


def test_threads_share_the_desk(client: PlacementClient) -> None:
    """Batches and releases from several threads, with consumers in common, leave exact books."""
    client.report([node(1, vcpus=200)])

    def work(offset: int) -> int:
        won = 0
        for _ in range(3):
            batch = [claim(offset + number, on=1, vcpus=1) for number in range(10)]
            for entry in batch:
                entry.allocations = {node_uuid(1): {"VCPU": 1}}
            won += sum(error is None for error in client.claim(batch))
            client.release([server_uuid(offset + number) for number in range(5)])
        return won

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(work, [0, 5, 10, 15]))
    assert all(won)
    held = sum(client.allocations(server_uuid(number))[1] is not None for number in range(30))
    assert used(client, 1) == held
