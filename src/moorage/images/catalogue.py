"""The built-in catalogue of images: records only, for a cloud without an Image service."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.database import Database
from moorage.db.tables.compute import images
from moorage.db.upsert import insert_if_absent
from moorage.images.contract import Image, ImageNotFoundError

_NAMESPACE = uuid.UUID("5a1d7c0e-6f4b-4c55-9d1e-0b6a3a1f6c11")
_MIB = 1024 * 1024
_GENERIC: Mapping[str, Any] = {
    "disk_format": "qcow2",
    "container_format": "bare",
    "hw_architecture": "x86_64",
}

SEEDS: Mapping[str, Mapping[str, Any]] = {
    "cirros-0.6.3-x86_64-disk": {**_GENERIC, "size": 21 * _MIB, "min_disk": 1, "os_distro": "cirros"},
    "debian-12-generic-amd64": {
        **_GENERIC,
        "size": 425 * _MIB,
        "min_disk": 3,
        "min_ram": 512,
        "os_distro": "debian",
    },
    "ubuntu-24.04-server-amd64": {
        **_GENERIC,
        "size": 598 * _MIB,
        "min_disk": 4,
        "min_ram": 1024,
        "os_distro": "ubuntu",
    },
}
"""What a new cloud has to boot from."""

_FIXED = ("min_ram", "min_disk", "size")
_OF_FORMAT = ("disk_format", "container_format")


@dataclass(frozen=True)
class ImageRecord:
    """An image as the Image API tells about it; `properties` has what Glance keeps in columns, too."""

    uuid: str
    name: str
    properties: dict[str, Any]
    created_at: datetime

    def as_image(self) -> Image:
        return Image(
            id=self.uuid,
            name=self.name,
            properties={
                name: str(value)
                for name, value in self.properties.items()
                if name not in _FIXED and name not in _OF_FORMAT
            },
            min_ram=self._number("min_ram"),
            min_disk=self._number("min_disk"),
            size=self._number("size"),
        )

    def _number(self, name: str) -> int:
        return int(self.properties.get(name, 0))


class Catalogue:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._found: dict[str, Image] = {}
        """The images that were asked for; none ever changes."""

    def find(self, image_id: str, token: str | None = None) -> Image:
        image = self._found.get(image_id)
        if image is None:
            image = self._found[image_id] = self.record(image_id).as_image()
        return image

    def record(self, image_id: str) -> ImageRecord:
        with self._database.read() as connection:
            row = connection.execute(_FIND, {"uuid": image_id}).one_or_none()
        if row is None:
            raise ImageNotFoundError(f"Image {image_id} could not be found.")
        return ImageRecord(*row)

    def records(self) -> list[ImageRecord]:
        """All of them, the newest first: a catalogue is short."""
        query = sa.select(images).order_by(images.c.created_at.desc(), images.c.uuid)
        with self._database.read() as connection:
            return [ImageRecord(*row) for row in connection.execute(query)]

    def seed(self, seeds: Mapping[str, Mapping[str, Any]] = SEEDS) -> list[str]:
        """Put these in, each under a UUID made from its name; those that are there stay as they are.

        Answers with the names of the new ones.
        """
        rows = [
            {"uuid": str(uuid.uuid5(_NAMESPACE, name)), "name": name, "properties": dict(properties)}
            for name, properties in seeds.items()
        ]
        return self._database.transact(lambda connection: _insert(connection, rows))


_FIND = sa.select(images).where(images.c.uuid == sa.bindparam("uuid"))


def _insert(connection: Connection, rows: Sequence[dict[str, Any]]) -> list[str]:
    new: list[str] = []
    for row in rows:
        statement = insert_if_absent(connection, images).values(**row)
        new += connection.execute(statement.returning(images.c.name)).scalars()
    return new
