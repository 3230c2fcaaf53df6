"""Where drivers that boot from disks of their own get images from, and put snapshots into.

Agents speak the Image API for it, whether it is Glance's or the built-in catalogue's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from moorage.drivers.contract import DriverError


class ImageStoreError(DriverError):
    """The image is not there, does not match its checksum, or can't be had now; another host may get it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retry_elsewhere=True)


class StoredImage(msgspec.Struct, frozen=True):
    """An image, as whoever keeps it says; what is in the file may be something else."""

    id: str
    name: str
    status: str
    disk_format: str
    container_format: str
    size: int
    """In bytes; 0 if it has no data yet."""
    hash_algorithm: str
    """As `hashlib` names it; empty if there is no checksum."""
    hash_value: str
    properties: dict[str, str] = {}


class ImageStore(Protocol):
    def describe(self, image_id: str) -> StoredImage:
        """ImageStoreError if it is not there."""

    def download(self, image: StoredImage, target: Path, check: Callable[[], None]) -> None:
        """Write its data to `target`, held against its checksum; `check` is called now and then, and may
        raise what ends it. What is at `target` after an error is not to be used."""

    def upload(self, image_id: str, source: Path, disk_format: str, properties: Mapping[str, str]) -> None:
        """Give an image that waits for data the content of `source`. Has it data already: nothing happens."""
