"""What a driver does for an agent: keep servers on nodes.

Every call may come again after a crash, and must then find out what is done already and go on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec


class DriverError(Exception):
    """The driver could not do it; `retry_elsewhere` says whether another host may."""

    def __init__(self, message: str, *, retry_elsewhere: bool = False) -> None:
        super().__init__(message)
        self.retry_elsewhere = retry_elsewhere


class DriverClosedError(Exception):
    """The agent ends while the call is at work; the call comes again after the restart."""


class Inventory(msgspec.Struct, frozen=True):
    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2_147_483_647
    step_size: int = 1
    allocation_ratio: float = 1.0


class Node(msgspec.Struct, frozen=True):
    """A machine that servers land on: one root provider in Placement."""

    uuid: str
    name: str
    hypervisor_type: str
    inventories: dict[str, Inventory]
    traits: list[str] = []
    facts: dict[str, Any] = {}
    """For the hypervisor list: host_ip, cpu_info, hypervisor_version, …"""


class ServerSpec(msgspec.Struct, frozen=True):
    """All that a driver needs to make a server."""

    uuid: str
    name: str
    project_id: str
    user_id: str
    node_uuid: str
    flavor: dict[str, Any]
    image: dict[str, Any] | None = None
    network: list[dict[str, Any]] = []
    metadata: dict[str, str] = {}
    user_data: str | None = None
    key_name: str | None = None
    public_key: str | None = None
    config_drive: bool = False


RUNNING = 1
SHUT_DOWN = 4
NO_STATE = 0
"""Power states, as the API numbers them."""


class Driver(Protocol):
    def nodes(self) -> Sequence[Node]:
        """All nodes of this host, now."""

    def spawn(self, spec: ServerSpec) -> int:
        """Make the server run; answers its power state. Done already: nothing happens."""

    def destroy(self, server_uuid: str, node_uuid: str) -> None:
        """Make the server gone, whatever state it is in. Gone already: nothing happens.

        It may come while another call for the same server is still at work, and then wins: that call ends
        without leaving anything behind.
        """

    def start(self, server_uuid: str, node_uuid: str) -> int: ...

    def stop(self, server_uuid: str, node_uuid: str) -> int: ...

    def reboot(self, server_uuid: str, node_uuid: str, *, hard: bool) -> int: ...

    def servers(self) -> dict[str, int]:
        """Power states of the servers that are here, by UUID."""

    def close(self) -> None:
        """The agent ends: calls that are still at work end soon."""
