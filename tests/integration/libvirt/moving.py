"""What tests of moves have in common: two hosts, and a guest that counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from moorage.drivers.contract import SHUT_DOWN, Parcel, ServerSpec
from moorage.drivers.libvirt.moves.settings import MoveSettings
from moorage.drivers.parts import LiveMovable, require
from tests.integration.libvirt.stand import DirectoryImages, LibvirtStand
from tests.lab.libvirt import tiny_guest
from tests.lab.libvirt.hosts import LibvirtHost, LibvirtLab
from tests.support.processes import wait_until


class MovingStand(LibvirtStand):
    @property
    def moves(self) -> LiveMovable:
        return require(self.driver, LiveMovable)

    def settle(self) -> None:
        """What the driver does with evacuated servers after an hour, now."""
        from moorage.drivers.libvirt.driver import LibvirtDriver
        from moorage.drivers.libvirt.moves import evacuation

        assert isinstance(self.driver, LibvirtDriver)
        evacuation.settle(self.driver.backend, 0.0)


_NOBODY = ServerSpec("", "", "", "", "", {})


@dataclass
class Two:
    """Two hosts, which share their storage or not, and a server that is on one of them."""

    one: MovingStand
    two: MovingStand
    is_shared: bool
    server: ServerSpec = _NOBODY
    serial: int = 0

    def __enter__(self) -> Two:
        return self

    def __exit__(self, *_: object) -> None:
        for stand in (self.one, self.two):
            stand.driver.close()

    def other(self, stand: MovingStand) -> MovingStand:
        return self.two if stand is self.one else self.one

    def spec(self, stand: MovingStand, spec: ServerSpec, **changes: Any) -> ServerSpec:
        """The same server, for another piece of work, there."""
        self.serial += 1
        node = stand.driver.nodes()[0].uuid
        return msgspec.structs.replace(spec, node_uuid=node, work=f"w{self.serial}", **changes)

    def kill_guest(self, spec: ServerSpec) -> None:
        """Of the first host. Its libvirtd has to have noticed: it takes the disk from QEMU's user then, and
        would take it from another host's guest."""
        self.one.host.kill_guest(spec.uuid)
        wait_until(
            lambda: self.one.driver.power(spec.uuid, spec.node_uuid) == SHUT_DOWN, "the end of the guest"
        )
        assert not self.runs_on(spec)

    def runs_on(self, spec: ServerSpec) -> list[str]:
        return [stand.host.name for stand in (self.one, self.two) if spec.uuid in stand.host.guest_pids()]


def directory(stand: MovingStand, spec: ServerSpec) -> Path:
    return stand.settings.instances_path / spec.uuid


def log(stand: MovingStand, spec: ServerSpec) -> Path:
    return directory(stand, spec) / "console.log"


def goes_on(stand: MovingStand, spec: ServerSpec, after: int = 0) -> int:
    """Wait until it counts there."""
    wait_until(lambda: tiny_guest.tick(log(stand, spec)) > after + 1, "a guest that counts", timeout=60)
    return tiny_guest.tick(log(stand, spec))


def runs(stand: MovingStand, spec: ServerSpec, boots: int) -> None:
    """Wait until it has booted so often, and counts."""
    wait_until(lambda: tiny_guest.boots(log(stand, spec)) == boots, f"boot {boots}", timeout=60)
    goes_on(stand, spec, tiny_guest.tick(log(stand, spec)))


def carried(parcel: Parcel) -> Parcel:
    decoded: Parcel = msgspec.json.decode(msgspec.json.encode(parcel))
    return decoded


def make(host: LibvirtHost, path: Path, images: DirectoryImages, image: str, **more: Any) -> MovingStand:
    moves = {"uri": "qemu+tcp://%s/system", "address": host.address, "unsafe": True, **more.pop("moves", {})}
    return MovingStand(host, path / host.name, images, image, moves=MoveSettings(**moves), **more)


def two(lab: LibvirtLab, path: Path, *, shared: bool, serial_listen: str = "", **moves: Any) -> Two:
    images = DirectoryImages(path / "images")
    image = images.add(tiny_guest.make_disk(path / "tiny.raw"), "raw")
    more: dict[str, Any] = {"moves": moves, "serial_listen": serial_listen}
    if shared:
        more["instances_path"] = path / "instances"
    one, other = (make(host, path, images, image, **more) for host in lab.hosts.values())
    return Two(one, other, shared)
