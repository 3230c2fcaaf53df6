"""Where images are looked up."""

from __future__ import annotations

from typing import Protocol

import msgspec


class ImageNotFoundError(LookupError):
    pass


class Image(msgspec.Struct, frozen=True):
    id: str
    name: str
    status: str = "active"
    min_ram: int = 0
    min_disk: int = 0
    size: int = 0
    properties: dict[str, str] = {}
    """`hw_…`, `trait:…`, `os_…`: what the scheduler and the driver look at."""


class Images(Protocol):
    def find(self, image_id: str) -> Image:
        """Raises `ImageNotFoundError`."""
