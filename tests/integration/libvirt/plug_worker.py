"""Plug or unplug a port on a host, in a process of its own, as an agent there would.

os-vif keeps to the first Open vSwitch that it hears of, so one process is good for one host.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from moorage.drivers.contract import ServerSpec
from moorage.drivers.libvirt.vifs.os_vif import OsVifs, OsVifSettings


class Order(msgspec.Struct):
    verb: str
    connection: str
    records: Path
    server_uuid: str
    port: dict[str, Any]


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order, dec_hook=lambda kind, text: kind(text))
    vifs = OsVifs(OsVifSettings(order.records, order.connection))
    vif = vifs.plug(ServerSpec(order.server_uuid, "s", "p", "u", "n", {}), order.port)
    if order.verb == "unplug":
        vifs.unplug(order.server_uuid, vif)
    sys.stdout.buffer.write(msgspec.json.encode(vif))


if __name__ == "__main__":
    main()
