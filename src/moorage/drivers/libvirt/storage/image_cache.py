"""Base images: fetched once for all servers of the host, checked, and made raw.

A server has its base under a name in its own directory, a hard link to the same file. So an image may leave
the cache at any moment: its data stays as long as a server needs it, and no one has to count users.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import re
import secrets
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moorage.drivers.contract import DriverError
from moorage.drivers.image_caching import CachedImage
from moorage.drivers.image_store import ImageStore, StoredImage
from moorage.drivers.libvirt.storage import qemu_img
from moorage.drivers.libvirt.storage.qemu_img import BadImageError, Check, ImageInfo

LOG = logging.getLogger(__name__)

DIRECTORY = "_base"
_PART = ".part"
_STALE = 24 * 3600.0
"""Seconds after which a download that nobody goes on with is removed."""
_OURS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])")
"""How names in the cache begin: with the image's UUID."""
_LEEWAY = 2 * 3600.0
"""Seconds by which a removal may be late: it is a chore that comes now and then."""
_BLOCK = 512
"""Bytes that `st_blocks` counts in."""
_FORMATS = {"raw", "qcow2", "vmdk", "vdi", "vhd", "vhdx", "qed", "iso"}
_PROBED = {"vhd": "vpc", "iso": "raw"}
"""What `qemu-img` calls formats that have another name in the Image API."""
_KERNELS = {"aki", "ari"}
_VMDK_TYPES = {"monolithicSparse", "streamOptimized"}
"""Kinds of VMDK that are one file."""


_QCOW2 = b"QFI\xfb"
_QCOW2_HEADER = struct.Struct(">4sIQ56xQ")
"""Magic, version, where the name of the backing file is, incompatible features."""
_QCOW2_FEATURES = 3
"""The version that has features."""
_EXTERNAL_DATA = 1 << 2


class ImageCache:
    def __init__(self, instances: Path, store: ImageStore, host: str) -> None:
        """It has to be on the same file system as the servers' directories, since they share files; other
        hosts may use it, too."""
        self._directory = instances / DIRECTORY
        self._store = store
        self._host = host
        self._lock = threading.Lock()
        self._fetching: dict[str, threading.Lock] = {}

    def link(self, image_id: str, target: Path, check: Check) -> None:
        """Have the raw data of an image at `target`, for as long as that is there."""
        while True:
            base = self._have(image_id, check)
            with contextlib.suppress(FileNotFoundError):  # it was unused until now, and is gone again
                _link(base, target)
                return

    def fetch(self, image_id: str, check: Check) -> int:
        """Have it here, for who will want it soon; its size as a disk. BadImageError if it can't be used."""
        while True:
            with contextlib.suppress(FileNotFoundError):
                return self._have(image_id, check).stat().st_size

    def _have(self, image_id: str, check: Check) -> Path:
        """Where it was a moment ago: unused ones may go at any time, those that were wanted just now last."""
        image = self._store.describe(image_id)
        base = self._directory / _name(image)
        check()
        try:
            os.utime(base)
        except FileNotFoundError:
            with self._only(base.name):
                if not base.exists():
                    self._fetch(image, base, check)
        return base

    def remove_unused(self, seconds: float) -> list[str]:
        """Remove bases that no server has had for that long, and what interrupted downloads have left."""
        removed = []
        for path in self._files():
            with contextlib.suppress(FileNotFoundError):
                if _spare_seconds(path, path.stat(), seconds) > 0:
                    path.unlink()
                    removed.append(path.name)
        return removed

    def listed(self, seconds: float) -> list[CachedImage]:
        """What is there; overdue is what `remove_unused` would have removed for long, had it been done."""
        found = []
        for path in self._files():
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found.append(
                    CachedImage(
                        name=path.name,
                        size=status.st_blocks * _BLOCK,
                        idle_seconds=int(max(time.time() - status.st_mtime, 0)),
                        is_overdue=_spare_seconds(path, status, seconds) > _LEEWAY,
                    )
                )
        return found

    def _files(self) -> list[Path]:
        """Nothing that somebody else has put there: Nova has a directory of the same name, and disks of
        guests that it has left here lie over what is in it, without a link."""
        return sorted(path for path in self._directory.glob("*") if _OURS.match(path.name))

    def remove_interrupted(self) -> None:
        """Downloads of this host that nobody goes on with, since it has only just started. One of a process
        that was thought dead fails when it wakes up."""
        for path in self._directory.glob(f"*{_PART}"):
            _, _, rest = path.name.partition(".")
            if rest.rpartition(_PART)[0].rpartition(".")[0] == self._host:
                path.unlink(missing_ok=True)

    def _fetch(self, image: StoredImage, base: Path, check: Check) -> None:
        if image.disk_format not in _FORMATS | _KERNELS:
            raise BadImageError(
                f"image {image.id} has the format {image.disk_format!r}, which guests can't boot"
            )
        self._directory.mkdir(parents=True, exist_ok=True)
        with self._part(base) as part, self._part(base) as raw:
            LOG.info("fetching image %s", image.id)
            self._store.download(image, part, check)
            made = part
            if image.disk_format not in _KERNELS:
                found = inspect(part, image.disk_format, check)
                if found.format != "raw":
                    qemu_img.convert(part, found.format, raw, "raw", check)
                    made = raw
            made.chmod(0o644)
            with contextlib.suppress(FileExistsError):  # another host with the same storage was quicker
                os.link(made, base)

    @contextmanager
    def _part(self, base: Path) -> Iterator[Path]:
        """A name that nobody else uses, not even a process of ours that was thought dead."""
        path = base.with_name(f"{base.name}.{self._host}.{secrets.token_hex(4)}{_PART}")
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    @contextmanager
    def _only(self, name: str) -> Iterator[None]:
        with self._lock:
            lock = self._fetching.setdefault(name, threading.Lock())
        with lock:
            yield


def _spare_seconds(path: Path, status: os.stat_result, seconds: float) -> float:
    """For how long a file has been there that need not be; negative if it may still be wanted."""
    is_part = path.name.endswith(_PART)
    if status.st_nlink > 1 and not is_part:
        return -math.inf
    return time.time() - status.st_mtime - (_STALE if is_part else seconds)


def inspect(path: Path, claimed: str, check: Check | None = None) -> ImageInfo:
    """What a file is, if it is what it is said to be and names no other file; BadImageError if not.

    A raw image whose first bytes make it look like something else is refused, too: a guest may have written
    them, so that somebody later reads files of this host through it.
    """
    _check_header(path)
    try:
        probed = qemu_img.info(path, check=check)
    except DriverError as error:
        raise BadImageError(f"the image can't be read: {error}") from error
    wanted = _PROBED.get(claimed, claimed)
    if probed.format != wanted:
        raise BadImageError(f"the image is said to be {claimed}, but looks like {probed.format}")
    if probed.backing_filename:
        raise BadImageError("the image has a backing file")
    if probed.data_file:
        raise BadImageError("the image has a data file")
    if probed.format == "vmdk":
        _check_vmdk(path, probed)
    return probed


def _check_header(path: Path) -> None:
    """Of a qcow2: what names another file is not even shown to a program that might open that."""
    with path.open("rb") as file:
        header = file.read(_QCOW2_HEADER.size)
    if len(header) < _QCOW2_HEADER.size or not header.startswith(_QCOW2):
        return
    _, version, backing_file, incompatible = _QCOW2_HEADER.unpack(header)
    if backing_file:
        raise BadImageError("the image has a backing file")
    if version >= _QCOW2_FEATURES and incompatible & _EXTERNAL_DATA:
        raise BadImageError("the image has a data file")


def _check_vmdk(path: Path, probed: ImageInfo) -> None:
    if probed.create_type not in _VMDK_TYPES:
        raise BadImageError(
            f"the image is a VMDK of the type {probed.create_type!r}, which can name other files"
        )
    if any(Path(extent).name != path.name for extent in probed.extents):
        raise BadImageError("the image is a VMDK that names other files")


def _name(image: StoredImage) -> str:
    """An image never changes; one that is made anew under the same ID has another checksum."""
    return f"{image.id}-{image.hash_value[:16]}" if image.hash_value else image.id


def _link(base: Path, target: Path) -> None:
    with contextlib.suppress(FileExistsError):
        try:
            os.link(base, target)
        except FileNotFoundError:
            if not target.parent.exists():  # the server was destroyed meanwhile
                raise DriverError(f"there is no {target.parent}") from None
            raise
