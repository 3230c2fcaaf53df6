"""An agent's driver that migrates a server live, in a process that a test may kill or stop.

It reads its order from a file, and answers on its standard output.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moorage.drivers.contract import Parcel, ServerSpec
from moorage.drivers.libvirt.host.settings import HostSettings
from moorage.drivers.libvirt.moves.settings import MoveSettings
from moorage.drivers.libvirt.settings import LibvirtSettings
from tests.integration.libvirt.stand import DirectoryImages, LibvirtStand, PlainTaps
from tests.lab.libvirt import programs
from tests.lab.libvirt.hosts import LibvirtHost


@contextmanager
def moving(stand: LibvirtStand, spec: ServerSpec, expected: Parcel) -> Iterator[subprocess.Popen[str]]:
    """Another process is at it."""
    moves = stand.settings.moves
    order = {
        "host": [stand.host.name, stand.host.address, str(stand.host.directory), stand.host.first_pid],
        "state": str(stand.directory / "state"),
        "instances": str(stand.settings.instances_path),
        "uri": stand.settings.connection_uri,
        "moves": {"uri": moves.uri, "address": moves.address, "bandwidth": moves.bandwidth, "unsafe": True},
        "call": [spec.uuid, spec.node_uuid, expected],
    }
    path = stand.directory / "order.json"
    path.write_text(json.dumps(order))
    words = [sys.executable, "-m", __name__, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _move(order: dict[str, Any]) -> Parcel:
    from moorage.drivers.libvirt import loading

    settings = LibvirtSettings(
        instances_path=Path(order["instances"]),
        connection_uri=order["uri"],
        virt_type="qemu",
        moves=MoveSettings(**order["moves"]),
    )
    host_settings = HostSettings(guests=loading.guest_settings(settings))
    state = Path(order["state"])
    images = DirectoryImages(state / "images")
    name, address, directory, first_pid = order["host"]
    taps = PlainTaps(LibvirtHost(name, address, Path(directory), first_pid))
    driver = loading.driver(name, state, settings, host_settings, images, taps)
    return driver.live_migrate(*order["call"])


if __name__ == "__main__":
    programs.use_binding()
    print(json.dumps(_move(json.loads(Path(sys.argv[1]).read_text()))), flush=True)
