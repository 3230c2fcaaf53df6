"""What a libvirt driver asks for: ports plugged before a domain starts, unplugged after it is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from moorage.drivers.contract import ServerSpec

_TAP = "tap"
_KEPT = 11


class Vif(msgspec.Struct, frozen=True):
    """A port's device on this host, as the domain has to name it.

    Without a `bridge` the device is there: `<interface type='ethernet'>` with `<target managed='no'/>`. With
    one, libvirt makes and plugs it: `<interface type='bridge'>`, and, if there is an `interface_id`,
    `<virtualport type='openvswitch'>`.
    """

    port_id: str
    mac: str
    tap: str
    mtu: int = 0
    """0: nobody said."""
    bridge: str = ""
    interface_id: str = ""
    offloads_off: bool = False
    """Checksums and segmentation are left to the guest, as Open vSwitch without a kernel's help needs it."""


class Vifs(Protocol):
    def plug(self, server: ServerSpec, port: Mapping[str, Any]) -> Vif:
        """Make the device of a port (as in `ServerSpec.network`), if it has to be there before the domain is.

        Plugged already: nothing happens, and the answer is the same. DriverError if it can't be done here.
        """

    def unplug(self, server_uuid: str, vif: Vif) -> None:
        """Take the device away. Gone already: nothing happens."""

    def close(self) -> None:
        """The agent ends: what is plugged stays so."""


def tap_of(port_id: str) -> str:
    """The name of a port's device: as Neutron's agents expect it, too."""
    return f"{_TAP}{port_id[:_KEPT]}"
