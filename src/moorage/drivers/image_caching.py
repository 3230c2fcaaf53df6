"""Images that a driver keeps for servers to come, so that each is fetched once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec


class CachedImage(msgspec.Struct, frozen=True):
    """A file of the cache: a whole image, or a part of one whose download was cut off."""

    name: str
    size: int
    """Bytes that it takes."""
    idle_seconds: int
    """For so long nobody has wanted it."""
    is_overdue: bool
    """No server has it, and it should have been removed by now."""


@runtime_checkable
class ImageCaching(Protocol):
    def cached_images(self) -> Sequence[CachedImage]: ...

    def expire_images(self) -> None:
        """Remove what is due. At any moment: servers keep what they have of an image that goes."""
