"""Where images are looked up, and where records of new ones are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec


class ImageNotFoundError(LookupError):
    pass


class ImagesUnavailableError(Exception):
    """The Image service did not answer, or not in a way that makes sense."""


class ImageRefusedError(Exception):
    """The Image service says no: a quota, a protected image, a value that it does not take."""


class Image(msgspec.Struct, frozen=True):
    id: str
    name: str
    status: str = "active"
    min_ram: int = 0
    min_disk: int = 0
    size: int = 0
    properties: dict[str, str] = {}
    """`hw_…`, `trait:…`, `os_…`: what the scheduler and the driver look at."""
    disk_format: str = ""
    container_format: str = ""
    created_at: str = ""
    """As the Image API writes it: `2026-01-31T12:00:00Z`."""
    location: str = ""
    """A URL where its data is, for drivers whose machines fetch it themselves."""
    hash_algorithm: str = ""
    """As `hashlib` names it; empty if there is no checksum."""
    hash_value: str = ""
    owner: str = ""
    """The project that it is of."""


class NewImage(msgspec.Struct, frozen=True):
    """The record of an image whose data comes later, by the agent that has it."""

    name: str
    project_id: str
    """Whose it is."""
    id: str = ""
    """Chosen by whoever may have to ask twice; empty lets the Image service choose."""
    visibility: str = "private"
    member: str = ""
    """A project that it is shared with."""
    disk_format: str = ""
    container_format: str = ""
    min_disk: int = 0
    min_ram: int = 0
    properties: dict[str, str] = {}


class Images(Protocol):
    """`token` is the Keystone token of who asks, if there is one: Glance decides what its owner may.
    `project_id` says the same to the built-in catalogue; None may see everything.

    Each method raises `ImagesUnavailableError` if nobody answers.
    """

    def find(self, image_id: str, token: str | None = None, project_id: str | None = None) -> Image:
        """Raises `ImageNotFoundError`."""

    def create(self, new: NewImage, token: str | None = None) -> str:
        """The id of the new record, which is `queued`. An id that was chosen, and is there: nothing happens.

        Raises `ImageRefusedError`.
        """

    def delete(self, image_id: str, token: str | None = None) -> None:
        """Nothing happens if it is gone already. Raises `ImageRefusedError`."""

    def select(
        self, properties: Mapping[str, str], token: str | None = None, project_id: str | None = None
    ) -> list[Image]:
        """Those that have all these properties, and belong to the project if one is given; newest first."""
