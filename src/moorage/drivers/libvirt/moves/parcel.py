"""What hosts tell each other about a server that moves."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from moorage.drivers.contract import DriverError, Parcel
from moorage.drivers.libvirt.host.topology import GuestTopology
from moorage.drivers.libvirt.vifs.contract import Vif

T = TypeVar("T", bound=msgspec.Struct)


class CopiedFile(msgspec.Struct, frozen=True):
    name: str
    size: int
    """In bytes, as it is on the disk of its host."""


class HandedOver(msgspec.Struct, frozen=True):
    """What a source says of a server that it has shut down."""

    node_uuid: str
    uri: str
    """Of the source's libvirt, as other hosts reach it."""
    path: str
    """The server's directory there."""
    token: str
    """A file in it."""
    disk_size: int
    """Of the root disk, as the guest sees it."""
    files: list[CopiedFile]
    hardware: dict[str, str]
    definition: str = ""
    """What another system has defined it as, if it keeps that."""


class Expected(msgspec.Struct, frozen=True):
    """What a destination says of a guest that may come while it runs."""

    node_uuid: str
    uri: str
    """Of the destination's libvirt, as other hosts reach it."""
    path: str
    token: str
    """A file in that directory."""
    is_shared: bool
    """The server's disks are there already: the hosts have one storage."""
    sizes: dict[str, int]
    """Of disks that wait to be filled, by the name of their file, as the guest sees them."""
    is_flat: bool
    """The root disk there has no base: all of it has to be copied."""
    address: str
    """Where QEMU's own connections go; empty: where libvirt thinks."""
    vifs: list[Vif]
    topology: GuestTopology
    vnc_listen: str
    serial_listen: str
    serial_port: int
    post_copy_objection: str = ""
    """Why the guest can't go on there before all of its memory is; empty if it can."""
    takes_adopted: bool = False
    """Its release knows of guests that keep the definition of another system."""


_ADOPTED = "adopted"
"""A release that knows of no adopted guests finds nothing that it could read."""


def pack_handed_over(handed: HandedOver) -> Parcel:
    return {_ADOPTED: pack(handed)} if handed.definition else pack(handed)


def unpack_handed_over(parcel: Parcel) -> HandedOver:
    return unpack(parcel.get(_ADOPTED, parcel), HandedOver)


def pack(struct: msgspec.Struct) -> Parcel:
    packed: Parcel = msgspec.to_builtins(struct)
    return packed


def unpack(parcel: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(parcel, kind)
    except msgspec.ValidationError as error:
        raise DriverError(f"the other host's driver is another one, or another version: {error}") from error
