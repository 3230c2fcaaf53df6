"""Scheduler hints: what a user says of the neighbours, or of the machine, that a server shall have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moorage.scheduler.request import Request

SAME = "same_host"
DIFFERENT = "different_host"
MACHINE = "candidate_node"
"""Machines, by their UUIDs or names in Ironic: the server has to be on one of them."""


def named(hints: Mapping[str, Any], key: str) -> list[str]:
    """The servers or machines that a hint names; clients send one or a list of them."""
    value = hints.get(key) or []
    return [value] if isinstance(value, str) else [str(uuid) for uuid in value]


def with_neighbours(request: Request, hints: Mapping[str, Any], node_of: Mapping[str, str]) -> Request:
    """The request with its hints resolved; `node_of` gives the node of each server that has one."""
    same = named(hints, SAME)
    different = named(hints, DIFFERENT)
    return replace(
        request,
        same_nodes=frozenset(node_of[uuid] for uuid in same if uuid in node_of) if same else None,
        different_nodes=frozenset(node_of[uuid] for uuid in different if uuid in node_of),
    )
