"""A small fleet that the tests of Placement's clients share."""

from __future__ import annotations

from typing import Any

from moorage.placement.client.contract import ConsumerClaim, ReportedProvider

PROJECT = "8a1c0c9f-3f5e-4a0d-9d6e-000000000001"
USER = "8a1c0c9f-3f5e-4a0d-9d6e-000000000002"
EAST = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
WEST = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"


def node_uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def server_uuid(number: int) -> str:
    return f"11111111-0000-4000-8000-{number:012}"


def node(number: int, vcpus: int = 8, traits: list[str] | None = None, **more: Any) -> ReportedProvider:
    return ReportedProvider(
        uuid=node_uuid(number),
        name=f"node-{number}",
        inventories={"VCPU": {"total": vcpus}, "MEMORY_MB": {"total": 16384, "reserved": 512}},
        traits=traits or [],
        **more,
    )


def claim(number: int, on: int, vcpus: int = 2, generation: int | None = None) -> ConsumerClaim:
    return ConsumerClaim(
        consumer_uuid=server_uuid(number),
        allocations={node_uuid(on): {"VCPU": vcpus, "MEMORY_MB": 1024}},
        project_id=PROJECT,
        user_id=USER,
        consumer_generation=generation,
    )
