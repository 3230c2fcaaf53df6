"""What a driver does for an agent: keep servers on nodes.

Every call may come again after a crash, and must then find out what is done already and go on from there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

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
    """For the hypervisor list: host_ip, cpu_info, hypervisor_version, …"""
    shared_through: str = ""
    """The placement aggregate in which it shares something with others; empty if it does not."""


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

    def rebuild(self, spec: ServerSpec) -> int:
        """Make the server anew where it is, from the image of `spec`; answers its power state."""

    def hand_over(self, server_uuid: str, node_uuid: str) -> Parcel:
        """Shut the server down, and give what another host needs to go on with it.

        It stays here, shut down, until `destroy` says that it has arrived, or `start` that it has not.
        """

    def take_over(self, spec: ServerSpec, parcel: Parcel) -> int:
        """Go on with a server that another host handed over or migrated live; answers its power state."""

    def expect(self, spec: ServerSpec) -> Parcel:
        """Prepare for a server that comes live, and say where it shall come to; `destroy` undoes that."""

    def live_migrate(self, server_uuid: str, node_uuid: str, destination: Parcel) -> Parcel:
        """Move the running server to `destination`, as that host's `expect` gave it.

        When this returns, the server runs no longer here, and the other host's `take_over` gets what is
        returned. If it fails, the server runs on here.
        """

    def abort_live_migration(self, server_uuid: str) -> None:
        """A `live_migrate` that is at work fails soon. If none is, nothing happens."""

    def hurry_live_migration(self, server_uuid: str) -> None:
        """A `live_migrate` that is at work ends soon, even if the server has to pause for it."""

    def attach_interface(self, server_uuid: str, node_uuid: str, port: Mapping[str, Any]) -> None:
        """Give the server one more port, as in `ServerSpec.network`. Has it already: nothing happens.

        If it fails, the server has what it had.
        """

    def detach_interface(self, server_uuid: str, node_uuid: str, port_id: str) -> None:
        """Take a port from the server. Has none such: nothing happens."""

    def servers(self) -> dict[str, int]:
        """Power states of the servers that are here, by UUID."""

    def progress(self) -> dict[str, int]:
        """How far calls have come that may be at work for long, in percent, by server."""

    def give_way(self, server_uuid: str) -> None:
        """The server is about to be destroyed: calls that are at work on it change nothing any more."""

    def close(self) -> None:
        """The agent ends: calls that are still at work end soon."""


class SharedNode(msgspec.Struct, frozen=True):
    """A node that any of several hosts could own."""

    node: Node
    free: bool
    """Nobody's server is on it, so that it may go to another host."""


class Held(NamedTuple):
    """A machine that is held for a server."""

    server_uuid: str
    node_uuid: str
    """The node that the server should be on, for it to be there rightly."""


class SharedNodes(Protocol):
    """What a driver does besides whose nodes are shared out among hosts: it works only on those that it was
    told to keep."""

    def look(self) -> None:
        """Look at the machines anew; what the others answer is as old as this. DriverError if it can't."""

    def terms(self) -> dict[str, Any]:
        """Which nodes it serves, and with whom: hosts that say the same are peers."""

    def eligible(self) -> Mapping[str, SharedNode]:
        """The nodes that it serves, by UUID, whoever owns them; the same object until something changes."""

    def share(self, host: str, members: Sequence[str]) -> set[str]:
        """Those of the eligible nodes that this host should own among these."""

    def fate(self, node_uuid: str) -> SharedNode | None:
        """What became of a node that is not eligible any more; None only if it is certain that it is gone."""

    def keep(self, node_uuids: Collection[str]) -> None:
        """These are this host's from now on, and no others."""

    def trust(self, until: float) -> None:
        """That they are this host's may be relied on until then, by `uptime`; after that, nothing is changed
        until it is said anew."""

    def held(self) -> set[Held]:
        """What machines are held for, in whatever state: this host's, and such as nobody may keep."""

    def sweep(self, held: Held) -> bool:
        """Let go of a machine that is held for a server that is not there; False if there is nothing to do
        here.

        What does not say itself that it is ours is left alone.
        """
