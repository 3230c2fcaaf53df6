"""What is measured, over HTTP only and with the same code for both sides."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from urllib.parse import urlencode

from bench.placement import load
from bench.placement.load import Job, Meter, Outcome, message
from bench.placement.nodes import ASK, Inventory, Node
from tests.support.wire import Wire

CLIENTS = 16
CLAIM_TARGETS = 500
RESOURCES = ",".join(f"{name}:{amount}" for name, amount in ASK.items())


class WrongAnswerError(Exception):
    """A side was fast, but not right: its figure would mean nothing."""


def candidates(port: int, expected: int, repeats: int, meter: Meter) -> Outcome:
    """The scheduler's usual question: who has room for this, with these instructions; at most 1,000."""
    query = urlencode({"resources": RESOURCES, "required": "HW_CPU_X86_AVX2", "limit": 1000})
    path = f"/allocation_candidates?{query}"
    with Wire(port, timeout=600) as wire:
        answer = wire.get(path)
        found = len(answer.json()["allocation_requests"]) if answer.status == 200 else answer.status
    if found != expected:
        raise WrongAnswerError(f"expected {expected} candidates, got {found}")
    return load.run(port, [[message("GET", path)]] * repeats, clients=1, meter=meter)


def in_tree(port: int, nodes: list[Node], repeats: int, meter: Meter) -> Outcome:
    """The question that a rebuild or a move to a named host asks."""
    chosen = random.Random(2).choices(nodes, k=repeats + 20)
    jobs = [
        [message("GET", f"/allocation_candidates?resources={RESOURCES}&in_tree={node.uuid}")]
        for node in chosen
    ]
    load.run(port, jobs[:20], clients=1)
    return load.run(port, jobs[20:], clients=1, meter=meter)


def claims(port: int, nodes: list[Node], seconds: float, meter: Meter) -> Outcome:
    """New servers from 16 clients, spread over some hundred nodes; then every unit is counted."""
    targets = random.Random(3).sample(nodes, min(CLAIM_TARGETS, len(nodes)))
    uuids = [node.uuid for node in targets]
    before = _used(port, uuids, "VCPU")
    outcome = load.run(port, _claims(uuids, {"VCPU": 1}), CLIENTS, seconds, meter)
    _check_accounting(before, _used(port, uuids, "VCPU"), outcome)
    return outcome


def hot_provider(port: int, seconds: float, meter: Meter) -> Outcome:
    """16 clients that all want the same, large provider: there is room for all of them."""
    hot = str(uuid.uuid4())
    with Wire(port) as wire:
        wire.post("/resource_providers", {"uuid": hot, "name": f"hot-{hot}"})
        wire.put(
            f"/resource_providers/{hot}/inventories",
            {
                "resource_provider_generation": 0,
                "inventories": {"VCPU": Inventory(100_000_000, 0, 1.0).as_body()},
            },
        )
    outcome = load.run(port, _claims([hot], {"VCPU": 1}), CLIENTS, seconds, meter)
    _check_accounting({hot: 0}, _used(port, [hot], "VCPU"), outcome)
    return outcome


def report_one_by_one(port: int, nodes: list[Node]) -> Outcome:
    """New nodes, each reported as a compute service does: provider, inventories, traits, aggregates."""
    return load.run(port, (_new_node_job(node) for node in nodes), CLIENTS)


def report_unchanged_one_by_one(port: int, nodes: list[Node]) -> Outcome:
    """What a compute service asks at least in order to learn that nothing has changed."""
    parts = ("inventories", "traits", "aggregates")
    jobs = ([message("GET", f"/resource_providers/{node.uuid}/{part}") for part in parts] for node in nodes)
    return load.run(port, jobs, CLIENTS)


def _claims(uuids: list[str], amounts: dict[str, int]) -> Iterator[Job]:
    dice = random.Random()  # a consumer that exists already would be a real conflict
    while True:
        body = {
            "allocations": {dice.choice(uuids): {"resources": amounts}},
            "project_id": "bench",
            "user_id": "bench",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        yield [message("PUT", f"/allocations/{uuid.UUID(int=dice.getrandbits(128), version=4)}", body)]


def _new_node_job(node: Node) -> Job:
    path = f"/resource_providers/{node.uuid}"
    inventories = {name: inventory.as_body() for name, inventory in node.inventories.items()}
    return [
        message("POST", "/resource_providers", {"uuid": node.uuid, "name": node.name}),
        message(
            "PUT", f"{path}/inventories", {"resource_provider_generation": 0, "inventories": inventories}
        ),
        message("PUT", f"{path}/traits", {"resource_provider_generation": 1, "traits": node.traits}),
        message(
            "PUT", f"{path}/aggregates", {"resource_provider_generation": 2, "aggregates": node.aggregates}
        ),
    ]


def _used(port: int, uuids: list[str], name: str) -> dict[str, int]:
    with Wire(port) as wire:
        return {u: wire.get(f"/resource_providers/{u}/usages").json()["usages"].get(name, 0) for u in uuids}


def _check_accounting(before: dict[str, int], after: dict[str, int], outcome: Outcome) -> None:
    grown = sum(after.values()) - sum(before.values())
    if grown != outcome.succeeded:
        raise WrongAnswerError(f"{outcome.succeeded} claims were acknowledged, usage grew by {grown}")
