"""Where images are looked up."""

from __future__ import annotations

from typing import Protocol

import msgspec


class ImageNotFoundError(LookupError):
    pass


class ImagesUnavailableError(Exception):
    """The Image service did not answer, or not in a way that makes sense."""


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
    def find(self, image_id: str, token: str | None = None) -> Image:
        """As the owner of the Keystone token sees it, if there is one.

        Raises `ImageNotFoundError`, or `ImagesUnavailableError`.
        """
