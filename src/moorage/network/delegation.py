"""Delegation: the phases of a server's ports that a conductor leaves to the agent, amid an upgrade."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.network.contract import Binding, PortRequest, ServerPorts

DELEGATED = "delegated_ports"
"""In the payload of a `spawn`."""
HOLDING = "holding"
"""In the payload of a task that releases all that a server has of the network."""
MADE = "ports"
"""In the facts of a result: the ports as the agent got them."""


class Delegated(msgspec.Struct, frozen=True):
    """What an agent needs to know to do phase 2, and phase 1 before it if there is an order."""

    binding: Binding
    """Its ports are those that a conductor made."""
    order: PortRequest | None = None
    await_plug: bool = False
    """Nobody else can see whether the ports come up."""


def payload(delegated: Delegated) -> dict[str, Any]:
    """As it goes along with a task."""
    found: dict[str, Any] = msgspec.to_builtins(delegated)
    return found


def delegated_in(payload: Mapping[str, Any]) -> Delegated | None:
    """What a spawn leaves to the agent, if anything."""
    found = payload.get(DELEGATED)
    return None if found is None else msgspec.convert(found, Delegated)


def server_ports_in(payload: Mapping[str, Any]) -> ServerPorts | None:
    """What a task wants to be released, if anything."""
    found = payload.get(HOLDING)
    return None if found is None else msgspec.convert(found, ServerPorts)
