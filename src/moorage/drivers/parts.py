"""What only some drivers can, in parts: a driver has a part by having its methods.

What a driver has no part for, nobody asks of it: its nodes say what they can (`capabilities.py`), and a task
that comes all the same fails with a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

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
class LiveMovable(Movable, Protocol):
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


@runtime_checkable
class Pluggable(Protocol):
    def attach_interface(self, server_uuid: str, node_uuid: str, port: Mapping[str, Any]) -> None:
        """Give the server one more port, as in `ServerSpec.network`. Has it already: nothing happens.

        If it fails, the server has what it had.
        """

    def detach_interface(self, server_uuid: str, node_uuid: str, port_id: str) -> None:
        """Take a port from the server. Has none such: nothing happens."""


PARTS: Mapping[str, type] = {
    "rebuild": Rebuildable,
    "migrate": Movable,
    "live_migrate": LiveMovable,
    "change_interfaces": Pluggable,
}
"""By what `Capabilities` calls it."""

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
