"""Small clouds for tests: nodes with room, as host states and as Placement's candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from moorage.placement.client.contract import AllocationRequest, Candidates, ProviderSummary
from moorage.scheduler.board import Board
from moorage.scheduler.hosts import HostState
from moorage.scheduler.offers import Offers, offers
from moorage.scheduler.request import Request, from_flavor

SMALL = {"VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 20}


def uuid(number: int) -> str:
    return str(UUID(int=number))


def flavor(**extra_specs: str) -> dict[str, Any]:
    return {"vcpus": 2, "ram": 2048, "disk": 20, "ephemeral": 0, "swap": 0, "extra_specs": extra_specs}


def request(server: int = 999, **more: Any) -> Request:
    return from_flavor(uuid(server), flavor(), **more)


def host(number: int, **more: Any) -> HostState:
    return HostState(f"host-{number}", f"host-{number}", uuid(number), **more)


@dataclass(frozen=True)
class Node:
    """A node of a cloud: what it has free, and its host state."""

    state: HostState
    vcpus: int = 16
    ram: int = 65536
    disk: int = 1000


def candidates(nodes: Iterable[Node], amounts: Mapping[str, int] = SMALL) -> Candidates:
    summaries = {}
    for node in nodes:
        free = {"VCPU": node.vcpus, "MEMORY_MB": node.ram, "DISK_GB": node.disk}
        resources = {name: {"capacity": amount + 7, "used": 7} for name, amount in free.items()}
        summaries[node.state.node_uuid] = ProviderSummary(resources, root_provider_uuid=node.state.node_uuid)
    requests = [AllocationRequest({node: {"resources": dict(amounts)}}, {"": [node]}) for node in summaries]
    return Candidates(requests, summaries)


def cloud(nodes: Iterable[Node], amounts: Mapping[str, int] = SMALL) -> tuple[Offers, Board]:
    listed = list(nodes)
    hosts = {node.state.node_uuid: node.state for node in listed}
    return offers(candidates(listed, amounts), hosts), Board(hosts)
