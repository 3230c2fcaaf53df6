"""The built-in catalogue of images, for a cloud without an Image service."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.db.tables.images import images
from moorage.db.upsert import insert_if_absent
from moorage.images import members
from moorage.images import record as records
from moorage.images.contract import Image, ImageNotFoundError, ImageRefusedError, NewImage
from moorage.images.members import ImageMembers
from moorage.images.record import ImageRecord

_NAMESPACE = uuid.UUID("5a1d7c0e-6f4b-4c55-9d1e-0b6a3a1f6c11")
_MIB = 1024 * 1024
_GENERIC: Mapping[str, Any] = {"disk_format": "qcow2", "container_format": "bare"}
_X86: Mapping[str, str] = {"hw_architecture": "x86_64"}

SEEDS: Mapping[str, Mapping[str, Any]] = {
    "cirros-0.6.3-x86_64-disk": {
        **_GENERIC,
        "size": 21 * _MIB,
        "min_disk": 1,
        "properties": {**_X86, "os_distro": "cirros"},
    },
    "debian-12-generic-amd64": {
        **_GENERIC,
        "size": 425 * _MIB,
        "min_disk": 3,
        "min_ram": 512,
        "properties": {**_X86, "os_distro": "debian"},
    },
    "ubuntu-24.04-server-amd64": {
        **_GENERIC,
        "size": 598 * _MIB,
        "min_disk": 4,
        "min_ram": 1024,
        "properties": {**_X86, "os_distro": "ubuntu"},
    },
}
"""What a new cloud has to boot from: records without data, which simulated hosts can do with."""

_FRESH_SECONDS = 1.0
"""For which a record that was found is believed: boots come by the hundred, and of few images."""
_MOST_FOUND = 1000


class Catalogue:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.members = ImageMembers(database)
        self._found: dict[str, tuple[float, ImageRecord]] = {}

    def find(self, image_id: str, token: str | None = None, project_id: str | None = None) -> Image:
        now = time.monotonic()
        since, record = self._found.get(image_id, (now - _FRESH_SECONDS, None))
        if record is None or now - since >= _FRESH_SECONDS:
            record = self.record(image_id)
            if len(self._found) >= _MOST_FOUND:
                self._found.clear()
            self._found[image_id] = (now, record)
        if not record.is_seen_by(project_id) and not self.is_member(record, project_id or ""):
            raise ImageNotFoundError(f"Image {image_id} could not be found.")
        return record.as_image()

    def create(self, new: NewImage, token: str | None = None) -> str:
        """Late, it makes a record without data under an id that nobody else uses."""
        image_id = new.id or uuids.generate()
        row = {
            "uuid": image_id,
            "name": new.name,
            "owner": new.project_id,
            "visibility": new.visibility,
            "disk_format": new.disk_format or None,
            "container_format": new.container_format or None,
            "min_disk": new.min_disk,
            "min_ram": new.min_ram,
            "properties": dict(new.properties),
        }
        self.add(row, member=new.member)
        return image_id

    def delete(self, image_id: str, token: str | None = None) -> None:
        """What was its file is swept: see `files`."""
        self._found.pop(image_id, None)
        unprotected = sa.and_(images.c.uuid == image_id, sa.not_(images.c.protected))

        def remove(connection: Connection) -> bool:
            gone = connection.execute(sa.delete(images).where(unprotected)).rowcount
            return bool(gone) or connection.execute(_FIND, {"uuid": image_id}).one_or_none() is None

        if not self._database.transact(remove):
            raise ImageRefusedError(f"Image {image_id} is protected and cannot be deleted.")

    def select(
        self, properties: Mapping[str, str], token: str | None = None, project_id: str | None = None
    ) -> list[Image]:
        found = (
            record.as_image() for record in self.records() if project_id is None or record.owner == project_id
        )
        return [image for image in found if properties.items() <= image.properties.items()]

    def record(self, image_id: str) -> ImageRecord:
        with self._database.read() as connection:
            return _found(connection, image_id)

    def records(self) -> list[ImageRecord]:
        """All of them, the newest first: a catalogue is short."""
        query = sa.select(*records.COLUMNS).order_by(images.c.created_at.desc(), images.c.uuid)
        with self._database.read() as connection:
            return [records.of_row(row) for row in connection.execute(query)]

    def is_member(self, record: ImageRecord, project_id: str) -> bool:
        """Whether it is shared with this project."""
        return record.visibility == records.SHARED and (
            self.members.status(record.uuid, project_id) is not None
        )

    def add(self, values: Mapping[str, Any], member: str = "") -> bool:
        """A record that waits for its data, shared with a project if one is named; whether it is new."""
        row = {"protected": False, "status": records.QUEUED, "updated_at": utcnow(), **values}

        def write(connection: Connection) -> bool:
            new = bool(_insert(connection, [row]))
            if new and member:
                members.insert(connection, row["uuid"], member)
            return new

        return self._database.transact(write)

    def change(self, image_id: str, change: Callable[[ImageRecord], Mapping[str, Any]]) -> ImageRecord:
        """What `change` makes of the record; it may be asked again, and may refuse by raising."""

        def write(connection: Connection) -> ImageRecord:
            values = change(_found(connection, image_id, locked=True))
            if values:
                row = {**values, "updated_at": utcnow()}
                connection.execute(sa.update(images).where(images.c.uuid == image_id).values(row))
            return _found(connection, image_id)

        self._found.pop(image_id, None)
        return self._database.transact(write)

    def seed(self, seeds: Mapping[str, Mapping[str, Any]] = SEEDS) -> list[str]:
        """Put these in, each under a UUID made from its name; those that are there stay as they are.

        Answers with the names of the new ones.
        """
        fixed = {"visibility": records.PUBLIC, "protected": True, "status": records.ACTIVE}
        rows = [{"uuid": seed_id(name), "name": name, **fixed, **values} for name, values in seeds.items()]
        return self._database.transact(lambda connection: _insert(connection, rows))


def seed_id(name: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, name))


_FIND = sa.select(*records.COLUMNS).where(images.c.uuid == sa.bindparam("uuid"))


def _found(connection: Connection, image_id: str, *, locked: bool = False) -> ImageRecord:
    query = _FIND.with_for_update() if locked else _FIND
    row = connection.execute(query, {"uuid": image_id}).one_or_none()
    if row is None:
        raise ImageNotFoundError(f"Image {image_id} could not be found.")
    return records.of_row(row)


def _insert(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    new: list[str] = []
    for row in rows:
        statement = insert_if_absent(connection, images).values(**row)
        new += connection.execute(statement.returning(images.c.name)).scalars()
    return new
