"""Disks of an adopted guest, made such as ours are: the root disk is a QCOW2 file over `disk.base` or over
nothing, all others are raw. Those that Nova has made lie over files beside the server's directory, which stay
when it moves.

What they are is what the guest's definition says: to look at them would be to believe what the guest has
written. So a new file waits beside the old one, until it is written down that it is to take its place. On
storage that hosts share, a host that was frozen meanwhile makes one with a token that is written down
nowhere, and removes only its own.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from moorage.drivers.contract import DriverError, UnchangedError
from moorage.drivers.libvirt.domain.live_xml import LiveDisk
from moorage.drivers.libvirt.storage import qemu_img
from moorage.drivers.libvirt.storage.qemu_img import Check
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory


def prepare(directory: ServerDirectory, disks: Sequence[LiveDisk], check: Check) -> str:
    """While the guest is off; the token of what waits then. Nothing of the guest changes yet, but the name of
    what its root disk lies over."""
    for path in directory.waiting(f"{directory.node_uuid}-*"):  # of a time before the guest ran last
        path.unlink(missing_ok=True)
    making = _Making(directory, f"{directory.node_uuid}-{secrets.token_hex(4)}", check)
    for path, image_format in _formats(disks).items():
        if path == directory.disk:
            _prepare_root(making, image_format)
        elif image_format != "raw":
            making.convert(path, image_format, "raw")
    return making.token


def require_known(directory: ServerDirectory, disks: Sequence[LiveDisk]) -> None:
    known = {directory.disk, directory.ephemeral, directory.swap, directory.config_drive}
    for path in _formats(disks).keys() - known:
        raise UnchangedError(f"the server has a disk that is not known here: {path.name}")


def put_in_place(directory: ServerDirectory, token: str) -> None:
    """Again, if it was cut off: what has taken its place does not wait any more."""
    for path in directory.waiting(token) if token else []:
        with contextlib.suppress(FileNotFoundError):  # another host did it, while this one was frozen
            os.replace(path, path.with_suffix(""))


def root_size(directory: ServerDirectory, disks: Sequence[LiveDisk]) -> int:
    """As the guest sees it."""
    image_format = next((disk.format for disk in disks if disk.source == str(directory.disk)), "qcow2")
    return qemu_img.info(directory.disk, image_format).virtual_size


def _formats(disks: Sequence[LiveDisk]) -> dict[Path, str]:
    return {Path(disk.source): disk.format for disk in disks if disk.source and disk.device == "disk"}


@dataclass(frozen=True)
class _Making:
    directory: ServerDirectory
    token: str
    check: Check

    def convert(self, path: Path, image_format: str, wanted: str) -> None:
        directory, made = self.directory, self.directory.temporary(path.name)
        try:
            qemu_img.convert(path, image_format, made, wanted, self.check)
            os.replace(made, directory.waiting_for(path, self.token))
        except FileNotFoundError:
            raise DriverError(f"server {directory.server_uuid} is not on this host") from None
        finally:
            made.unlink(missing_ok=True)


def _prepare_root(making: _Making, image_format: str) -> None:
    directory = making.directory
    if image_format != "qcow2":
        making.convert(directory.disk, image_format, "qcow2")
        return
    found = qemu_img.info(directory.disk, "qcow2")
    if not found.backing_filename:
        return
    if found.backing_filename_format == "raw" and _have_base(directory, found.backing_filename):
        qemu_img.rebase_in_place(directory.disk, directory.base, "raw")
    else:
        making.convert(directory.disk, "qcow2", "qcow2")


def _have_base(directory: ServerDirectory, named: str) -> bool:
    """Whether what it lies over has our name for it, too; on another file system, it can't have."""
    path = directory.path / named
    if directory.base.exists():
        return path == directory.base or path.samefile(directory.base)
    with contextlib.suppress(OSError):
        os.link(path, directory.base)
        return True
    return False
