"""What a driver does for an agent: keep servers on nodes. How to write one: `docs/compute/drivers.md`.

Every call may come again after a crash, and must then find out what is done already and go on from there.
"""

from __future__ import annotations

import uuid
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


class MachineFailedError(DriverError):
    """The machine that was chosen is to blame; another one may do it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retry_elsewhere=True)


class UnchangedError(DriverError):
    """It is refused, and the server is in every way what it was."""


class BrokenServerError(DriverError):
    """It came to nothing, and the server could not be made what it was."""


class NotOursError(DriverError):
    """The node is another host's by now, or not yet this one's: what is to be done is that one's to do."""

    def __init__(self, node_uuid: str) -> None:
        super().__init__(f"node {node_uuid} is not this host's", retry_elsewhere=True)


class DriverClosedError(Exception):
    """The agent ends while the call is at work; the call comes again after the restart."""


class StartNotPermittedError(DriverClosedError):
    """The server may not be made to run now, or not any more: if it may, the call comes again."""


class Inventory(msgspec.Struct, frozen=True):
    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2_147_483_647
    step_size: int = 1
    allocation_ratio: float = 1.0


class ChildProvider(msgspec.Struct, frozen=True):
    """A part of a node that has resources of its own, as a NUMA cell or a device: a child in its tree."""

    name: str
    """Begins with the node's, so that no other provider has it. Its UUID follows from it (`child_uuid`)."""
    inventories: dict[str, Inventory]
    traits: list[str] = []
    parent: str = ""
    """The name of the child that it is below; empty if it is below the node itself."""


class Holding(msgspec.Struct, frozen=True):
    """What a server really has of a provider, as its driver knows."""

    server_uuid: str
    provider_uuid: str
    resources: dict[str, int]


def child_uuid(node_uuid: str, name: str) -> str:
    """Of a child provider: always the same, and for no other provider of any tree."""
    return str(uuid.uuid5(uuid.UUID(node_uuid), name))


class Node(msgspec.Struct, frozen=True):
    """A machine that servers land on: a root provider in Placement, and what is below it."""

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
    children: tuple[ChildProvider, ...] | None = None
    """What is below it, parents first; those that were there before go. None leaves them alone."""
    holdings: tuple[Holding, ...] = ()
    """Where allocations go if an inventory moves within the tree; of others, there is one with room."""
    starts_paused: bool = False
    """A `spawn` honours `ServerSpec.paused`, so that a server sees its ports only once they carry traffic."""
    keeps_ephemeral: bool = False
    """A `rebuild` honours `ServerSpec.preserve_ephemeral`."""


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
    files: list[dict[str, str]] = []
    """Those that the user has sent along: `path`, and `contents` in base64."""
    power_on: bool = True
    """Whether it shall run once it is there."""
    paused: bool = False
    """If it shall run: with its processors stopped, until `unpause`. For nodes that say `starts_paused`."""
    hints: dict[str, Any] = {}
    """What the user told the scheduler, for a driver that chooses, too."""
    work: str = ""
    """Names what this is for: the same whenever it is asked again, even of another host."""
    instance_name: str = ""
    """The name by which a hypervisor shall know it, as the API shows it to operators."""
    hostname: str = ""
    """What the guest shall call itself; its name, if the control plane does not say."""
    availability_zone: str = ""
    launch_index: int = 0
    reservation_id: str = ""
    allocations: dict[str, dict[str, int]] = {}
    """What it has been given, amounts by resource class, by provider's UUID; empty if all is of the node
    itself, or if the control plane does not say."""
    hardware: dict[str, str] = {}
    """What the driver of an earlier host said of the server's machine (`Lasting.hardware`)."""
    keep_disk: bool = False
    """Its earlier host is dead: if what that one kept of it is seen here, `spawn` goes on with it."""
    admin_password: str = ""
    """For `rescue`: what its administrator logs in with there, if the driver can set that. It must not be
    kept any longer than that takes, nor be logged."""
    preserve_ephemeral: bool = False
    """For `rebuild`: what is on its ephemeral disk stays. Asked only of nodes that say `keeps_ephemeral`."""

    def __repr__(self) -> str:
        """Without what only its user and its machine may know."""
        return f"ServerSpec({self.uuid} on {self.node_uuid}, {self.work})"


Parcel = dict[str, Any]
"""What one host gives another along with a server: only drivers know what is in it. It travels through the
control plane, so a driver that has much to give puts in where to get it."""

NO_STATE = 0
RUNNING = 1
PAUSED = 3
SHUT_DOWN = 4
CRASHED = 6
SUSPENDED = 7
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
