"""What a driver does for an agent: keep servers on nodes. How to write one: `docs/compute/drivers.md`.

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


class NoRoomError(DriverError):
    """Nothing is left here for the server; another host may have something, and nobody is to blame."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retry_elsewhere=True)


class NotOursError(DriverError):
    """The node is another host's by now, or not yet this one's: what is to be done is that one's to do."""

    def __init__(self, node_uuid: str) -> None:
        super().__init__(f"node {node_uuid} is not this host's", retry_elsewhere=True)


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
    """For the hypervisor list: host_ip, cpu_info, hypervisor_version, …; for the scheduler,
    `supported_instances`: (architecture, hypervisor type, mode), as images ask for them."""
    shared_through: str = ""
    """The placement aggregate in which it shares something with others; empty if it does not."""
    binds_ports: bool = False
    """What keeps its servers binds their ports, so that nobody else has to."""
    pool: bool = False
    """It is no machine, but offers those of several; which one a server gets, the driver knows."""


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
    power_on: bool = True
    """Whether it shall run once it is there."""
    hints: dict[str, Any] = {}
    """What the user told the scheduler, for a driver that chooses, too."""
    work: str = ""
    """Names what this is for: the same whenever it is asked again, even of another host."""


Parcel = dict[str, Any]
"""What one host gives another along with a server: only drivers know what is in it. It travels through the
control plane, so a driver that has much to give puts in where to get it."""

RUNNING = 1
SHUT_DOWN = 4
NO_STATE = 0
"""Power states, as the API numbers them."""


class Driver(Protocol):
    """What every driver does. What only some can is in `parts.py`."""

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

    def power(self, server_uuid: str, node_uuid: str) -> int:
        """The server's power state, as the machine itself says."""

    def servers(self) -> dict[str, int]:
        """Power states of the servers that are here, by UUID."""

    def progress(self) -> dict[str, int]:
        """How far calls have come that may be at work for long, in percent, by server."""

    def interrupt(self, server_uuid: str) -> None:
        """The server is about to be destroyed: calls that are at work on it change nothing any more."""

    def close(self) -> None:
        """The agent ends: calls that are still at work end soon."""
