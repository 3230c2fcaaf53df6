"""What only some drivers can, in parts: a driver has a part by having its methods.

What a driver has no part for, nobody asks of it: its nodes say what they can (`capabilities.py`), and a task
that comes all the same fails with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec

from moorage.drivers.contract import Driver, DriverError, Parcel, ServerSpec

P = TypeVar("P")


@runtime_checkable
class Rebuildable(Protocol):
    def rebuild(self, spec: ServerSpec) -> int:
        """Make the server anew where it is, from the image of `spec`; answers its power state."""


@runtime_checkable
class Movable(Protocol):
    def hand_over(self, server_uuid: str, node_uuid: str) -> Parcel:
        """Shut the server down, and give what another host needs to go on with it.

        It stays here, shut down, until `destroy` says that it has arrived, or `start` that it has not.
        """

    def take_over(self, spec: ServerSpec, parcel: Parcel) -> int:
        """Go on with a server that another host handed over or migrated live; answers its power state."""


@runtime_checkable
class ResizeChecking(Protocol):
    """Not every server can have every flavor. Agents ask before they hand one over."""

    def check_resize(self, server_uuid: str, node_uuid: str, flavor: Mapping[str, Any]) -> None:
        """DriverError if the server that is here can't be made what the flavor says; nothing is changed."""


@runtime_checkable
class ResizableInPlace(Protocol):
    """It makes a server what another flavor says on the node where it is, and what it was again."""

    def resize_in_place(self, spec: ServerSpec) -> int:
        """The server, shut down by `hand_over`, becomes what `spec` says; answers its power state.

        What it was is kept until one of the two below. If it fails, `undo_resize` is asked.
        """

    def keep_resize(self, server_uuid: str, node_uuid: str) -> None:
        """Forget what it was. Nothing is kept: nothing happens."""

    def undo_resize(self, server_uuid: str, node_uuid: str) -> None:
        """It is what it was, and shut down. Nothing is kept: nothing happens."""


ARRIVED = "arrived"
"""In the parcel of a live migration: the server runs at its destination already, and only there."""


@runtime_checkable
class LiveMovable(Movable, Protocol):
    def expect(self, spec: ServerSpec) -> Parcel:
        """Prepare for a server that comes live, and say where it shall come to; `destroy` undoes that."""

    def live_migrate(self, server_uuid: str, node_uuid: str, destination: Parcel) -> Parcel:
        """Move the running server to `destination`, as that host's `expect` gave it.

        When this returns, the server runs no longer here, and the other host's `take_over` gets what is
        returned. If it fails, the server runs on here. Asked again after it is done, it answers the same,
        until `destroy` says that the server need not be remembered.

        If there is no way back from here, the parcel says so (`ARRIVED`). Then `power` of the destination
        says `NO_STATE` while the server is on its way, and fails if it is not, so that it is found where it
        is even if its source is lost meanwhile.
        """

    def abort_live_migration(self, server_uuid: str) -> None:
        """A `live_migrate` that is at work fails soon. If none is, nothing happens."""

    def hurry_live_migration(self, server_uuid: str) -> None:
        """A `live_migrate` that is at work ends soon, even if the server has to pause for it."""


@runtime_checkable
class Pluggable(Protocol):
    def attach_interface(self, server_uuid: str, node_uuid: str, port: Mapping[str, Any]) -> None:
        """Give the server one more port, as in `ServerSpec.network`. Has it already: nothing happens.

        If it fails, the server has what it had.
        """

    def detach_interface(self, server_uuid: str, node_uuid: str, port_id: str) -> None:
        """Take a port from the server. Has none such: nothing happens."""


@runtime_checkable
class Pausable(Protocol):
    def pause(self, server_uuid: str, node_uuid: str) -> int:
        """Stop its processors; everything stays in memory. Answers its power state, as all of these do."""

    def unpause(self, server_uuid: str, node_uuid: str) -> int: ...


@runtime_checkable
class Suspendable(Protocol):
    def suspend(self, server_uuid: str, node_uuid: str) -> int:
        """Put its memory on the disk, and stop it."""

    def resume(self, server_uuid: str, node_uuid: str) -> int:
        """Go on with a suspended server where it was; `start` of one does the same."""


@runtime_checkable
class Rescuable(Protocol):
    def rescue(self, spec: ServerSpec) -> int:
        """Boot the server from the image of `spec`, with its own disk as a further one."""

    def unrescue(self, server_uuid: str, node_uuid: str) -> int:
        """Boot it from its own disk again, and forget the rescue disk."""


@runtime_checkable
class Snapshottable(Protocol):
    def snapshot(self, server_uuid: str, node_uuid: str, image_id: str) -> None:
        """Put what is on its disk now into an image that is there without data yet; the server runs on.

        Has the image its data already: nothing happens.
        """


@runtime_checkable
class CrashDumping(Protocol):
    def trigger_crash_dump(self, server_uuid: str, node_uuid: str) -> None:
        """Send a running server a non-maskable interrupt."""


@runtime_checkable
class PasswordChanging(Protocol):
    def change_password(self, server_uuid: str, node_uuid: str, password: str) -> None:
        """Set the password of the administrator of a running server."""


@runtime_checkable
class ConsoleLogging(Protocol):
    def console_log(self, server_uuid: str, node_uuid: str, lines: int | None) -> str:
        """What it has printed on its console, or the last lines of that."""


class ConsoleType(StrEnum):
    """As the API calls them."""

    NOVNC = "novnc"
    SERIAL = "serial"


class ConsoleAddress(msgspec.Struct, frozen=True):
    """Where a proxy reaches the console of a server."""

    host: str
    port: int
    path: str = ""
    """For consoles that are behind a web server of their own."""
    tls: bool = False
    """It speaks TLS from its first byte. A screen does not: it says after its first words what it can."""


@runtime_checkable
class RemoteConsoles(Protocol):
    def console(self, server_uuid: str, node_uuid: str, console_type: ConsoleType) -> ConsoleAddress:
        """Where the console of a running server is now; DriverError if it has none of this type."""


@runtime_checkable
class Diagnosable(Protocol):
    def diagnostics(self, server_uuid: str, node_uuid: str) -> dict[str, Any]:
        """What a running server uses, in the API's words since version 2.48."""


class ServerCell(msgspec.Struct, frozen=True):
    """A NUMA cell as a guest sees it, and where it is on the host."""

    vcpus: list[int]
    memory_mb: int
    host_cell: int
    pins: dict[int, int] = {}
    """The host's processor that each vCPU has for itself."""
    siblings: list[list[int]] = []
    """vCPUs that are threads of one core."""


class ServerTopology(msgspec.Struct, frozen=True):
    cells: list[ServerCell] = []
    """None for a guest that knows nothing of NUMA."""
    page_kib: int | None = None


@runtime_checkable
class TopologyTelling(Protocol):
    def topology(self, server_uuid: str, node_uuid: str) -> ServerTopology:
        """On which of the host's NUMA cells and processors a server is."""


PARTS: Mapping[str, type] = {
    "rebuild": Rebuildable,
    "migrate": Movable,
    "resize_in_place": ResizableInPlace,
    "live_migrate": LiveMovable,
    "change_interfaces": Pluggable,
    "pause": Pausable,
    "suspend": Suspendable,
    "rescue": Rescuable,
    "snapshot": Snapshottable,
    "crash_dump": CrashDumping,
    "change_password": PasswordChanging,
    "console_log": ConsoleLogging,
    "remote_console": RemoteConsoles,
    "diagnose": Diagnosable,
    "place": TopologyTelling,
}
"""By what `Capabilities` calls it."""


@runtime_checkable
class Lasting(Protocol):
    """Servers have something that must not change under them, wherever they go. Nobody asks for it: agents
    tell it along with the results of `spawn`, `rebuild` and `take_over`."""

    def hardware(self, server_uuid: str, node_uuid: str) -> dict[str, str]:
        """What every later `ServerSpec` of the server shall say again, as the version of a machine type."""


@runtime_checkable
class Remembering(Protocol):
    """It can say what a server is that it has and the control plane does not know: its database was restored
    from a backup. Nobody relies on it: what it does not say, an operator does."""

    def recall(self, server_uuid: str) -> ServerSpec:
        """As far as it knows, else with an empty name or flavor; DriverError if the server is not here."""


@runtime_checkable
class Watchful(Protocol):
    """It notices by itself when the power state of a server changes."""

    def watch(self, changed: Callable[[str, int], None]) -> None:
        """Call `changed` with a server's UUID and power state from now on; soon, and never for long. What
        `servers` answers is the truth: these are hints to look earlier."""


@runtime_checkable
class GuestAddressing(Protocol):
    """It carries the packets of its guests itself, and knows them by their addresses."""

    def server_at(self, address: str) -> str | None:
        """The UUID of the server that has this address on a network of this host; None if none has."""


@runtime_checkable
class SharedStorage(Protocol):
    """What it keeps of servers may be seen by other hosts, too."""

    def forsake(self, server_uuid: str) -> None:
        """The server is deleted, and no other host that lives has it: what others have left of it, where this
        one sees it, is not kept for them, and goes with the `destroy` that follows."""


class StartPermit(NamedTuple):
    """That a server may be made to run: until then, by `uptime`, it is surely nobody else's."""

    asked: float
    """When it was asked for."""
    until: float


@runtime_checkable
class Fenced(Protocol):
    """Its servers could be started elsewhere while this host is silent: it starts them by permission only."""

    def start_by_permit(self, permit: Callable[[str], StartPermit | None]) -> None:
        """From now on, make a server run only under what `permit` answers for it, which is looked at right
        before; whatever is delayed must have happened by its end, or not happen. None, or too late:
        StartNotPermittedError."""


_ABILITIES: Mapping[type, str] = {part: ability.replace("_", " ") for ability, part in PARTS.items()}


def of(driver: object) -> frozenset[str]:
    """What a driver has parts for."""
    return frozenset(ability for ability, part in PARTS.items() if isinstance(driver, part))


class MissingPartError(DriverError):
    """The driver can't do what is asked of it, and never will."""

    def __init__(self, part: type) -> None:
        super().__init__(f"the driver of this host can't {_ABILITIES[part]} servers")


def require(driver: Driver, part: type[P]) -> P:
    """The driver, as one that has this part."""
    if not isinstance(driver, part):
        raise MissingPartError(part)
    return driver
