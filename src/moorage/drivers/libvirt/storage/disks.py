"""The disks of a server: made once, under a temporary name first, so that what has its name is whole."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from moorage.drivers import config_drive
from moorage.drivers.contract import DriverError, ServerSpec
from moorage.drivers.libvirt.domain.guest_options import GuestOptions
from moorage.drivers.libvirt.storage import qemu_img
from moorage.drivers.libvirt.storage.image_cache import ImageCache
from moorage.drivers.libvirt.storage.qemu_img import Check
from moorage.drivers.libvirt.storage.server_directory import ServerDirectory

_GIB = 1 << 30
_MIB = 1 << 20
_EXT4 = ("mkfs.ext4", "-q", "-F", "-L", "ephemeral0")
_SWAP = ("mkswap", "-L", "swap0")


class DiskTooSmallError(DriverError):
    """The flavor's disk has no room for the image: on no host."""


class Disks:
    def __init__(self, images: ImageCache) -> None:
        self._images = images

    def prepare(self, spec: ServerSpec, options: GuestOptions, check: Check) -> None:
        """Fetch what they will be made from: if it is no good, nothing has been touched yet."""
        _check_size(self._images.fetch(image_of(spec), check), spec)
        for image_id in filter(None, (options.kernel_id, options.ramdisk_id)):
            self._images.fetch(image_id, check)

    def make(self, directory: ServerDirectory, spec: ServerSpec, options: GuestOptions, check: Check) -> None:
        """Whatever is missing of them."""
        self._root(directory, spec, check)
        if options.kernel_id:
            self._images.link(options.kernel_id, directory.kernel, check)
        if options.ramdisk_id:
            self._images.link(options.ramdisk_id, directory.ramdisk, check)
        make_further(directory, spec)

    def prepare_rescue(self, spec: ServerSpec, check: Check) -> None:
        self._images.fetch(image_of(spec), check)

    def make_rescue(self, directory: ServerDirectory, spec: ServerSpec, check: Check) -> None:
        """The disk that a server is rescued from, as large as its image."""
        self._images.link(image_of(spec), directory.rescue_base, check)
        _whole(
            directory,
            directory.rescue_disk,
            lambda path: qemu_img.create_overlay(path, directory.rescue_base, "raw"),
        )

    def _root(self, directory: ServerDirectory, spec: ServerSpec, check: Check) -> None:
        self._images.link(image_of(spec), directory.base, check)
        size = _check_size(directory.base.stat().st_size, spec)
        check()
        _whole(
            directory,
            directory.disk,
            lambda path: qemu_img.create_overlay(path, directory.base, "raw", size),
        )


def make_further(directory: ServerDirectory, spec: ServerSpec) -> None:
    """What does not come from an image, and is missing."""
    ephemeral, swap = int(spec.flavor.get("ephemeral") or 0), int(spec.flavor.get("swap") or 0)
    if ephemeral:
        _whole(directory, directory.ephemeral, lambda path: _formatted(path, ephemeral * _GIB, _EXT4))
    if swap:
        _whole(directory, directory.swap, lambda path: _formatted(path, swap * _MIB, _SWAP))
    if spec.config_drive:
        make_config_drive(directory, spec)


def grow(directory: ServerDirectory, spec: ServerSpec) -> None:
    """To the sizes of another flavor, while nobody uses them; what is large enough stays as it is."""
    root, ephemeral = (int(spec.flavor.get(name) or 0) * _GIB for name in ("disk", "ephemeral"))
    if root > qemu_img.info(directory.disk, "qcow2").virtual_size:
        qemu_img.resize(directory.disk, root, "qcow2")
    if directory.ephemeral.exists() and ephemeral > directory.ephemeral.stat().st_size:
        os.truncate(directory.ephemeral, ephemeral)
    swap = int(spec.flavor.get("swap") or 0) * _MIB
    if swap and directory.swap.exists() and directory.swap.stat().st_size != swap:
        directory.swap.unlink()
    make_further(directory, spec)


def require_room(flavor: Mapping[str, Any], root_size: int) -> None:
    """No disk is ever made smaller."""
    wanted = int(flavor.get("disk") or 0) * _GIB
    if wanted and wanted < root_size:
        raise DiskTooSmallError(
            f"Unable to resize disk down: it has {root_size / _GIB:.1f} GiB, the flavor {wanted // _GIB}"
        )


def image_of(spec: ServerSpec) -> str:
    if spec.image is None:
        raise DriverError("the server has no image: this driver knows no volumes to boot from")
    return str(spec.image["id"])


def make_config_drive(directory: ServerDirectory, spec: ServerSpec) -> None:
    content = config_drive.of(spec)
    _whole(directory, directory.config_drive, lambda path: _written(path, content))


def forget(directory: ServerDirectory) -> None:
    """Everything that was made from an image: a rebuild makes it anew."""
    for path in (
        *(directory.disk, directory.base, directory.ephemeral, directory.swap),
        *(directory.config_drive, directory.kernel, directory.ramdisk, *directory.waiting()),
    ):
        path.unlink(missing_ok=True)
    forget_rescue(directory)


def forget_rescue(directory: ServerDirectory) -> None:
    for path in (directory.rescue_disk, directory.rescue_base):
        path.unlink(missing_ok=True)


def _check_size(size: int, spec: ServerSpec) -> int:
    """How large the disk becomes: as the flavor says, or as the image is if that says nothing."""
    wanted = int(spec.flavor.get("disk") or 0) * _GIB
    if wanted and size > wanted:
        raise DiskTooSmallError(
            f"the image needs {size / _GIB:.1f} GiB, the flavor's disk has {wanted // _GIB}"
        )
    return wanted or size


def _whole(directory: ServerDirectory, target: Path, make: Callable[[Path], None]) -> None:
    if target.exists():
        return
    made = directory.temporary(target.name)
    try:
        make(made)
        os.replace(made, target)
    except FileNotFoundError:
        raise DriverError(f"server {directory.server_uuid} is not on this host") from None
    finally:
        made.unlink(missing_ok=True)


def _formatted(path: Path, size: int, words: Sequence[str]) -> None:
    with path.open("wb") as file:
        file.truncate(size)
    ended = subprocess.run([*words, str(path)], check=False, capture_output=True, text=True)
    if ended.returncode:
        raise DriverError(f"{words[0]} failed: {ended.stderr[-300:]}", retry_elsewhere=True)


def _written(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
