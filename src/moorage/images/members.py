"""Members: projects that a shared image is shared with.

They may use it as soon as they are; whether it is in their lists is for them to say.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.db.tables.images import image_members, images
from moorage.db.upsert import insert_if_absent
from moorage.images.contract import ImageNotFoundError, ImageRefusedError

PENDING, ACCEPTED, REJECTED = "pending", "accepted", "rejected"
STATUSES = (PENDING, ACCEPTED, REJECTED)
_MOST = 128
"""Of one image: as many as Glance allows, if nobody says otherwise."""


class TooManyMembersError(ImageRefusedError):
    pass


@dataclass(frozen=True)
class ImageMember:
    image_uuid: str
    project_id: str
    status: str
    created_at: datetime
    updated_at: datetime


_COLUMNS: tuple[sa.Column[Any], ...] = tuple(
    image_members.c[name] for name in ImageMember.__dataclass_fields__
)


class ImageMembers:
    def __init__(self, database: Database) -> None:
        self._database = database

    def listed(self, image_id: str) -> list[ImageMember]:
        query = sa.select(*_COLUMNS).where(image_members.c.image_uuid == image_id)
        with self._database.read() as connection:
            found = connection.execute(query.order_by(image_members.c.created_at, image_members.c.project_id))
            return [ImageMember(*row) for row in found]

    def status(self, image_id: str, project_id: str) -> str | None:
        """None for a project that is no member."""
        query = sa.select(image_members.c.status).where(*_is(image_id, project_id))
        with self._database.read() as connection:
            return connection.execute(query).scalar_one_or_none()

    def statuses(self, project_id: str) -> dict[str, str]:
        """By image: of all that are shared with a project."""
        query = sa.select(image_members.c.image_uuid, image_members.c.status).where(
            image_members.c.project_id == project_id
        )
        with self._database.read() as connection:
            return {row.image_uuid: row.status for row in connection.execute(query)}

    def add(self, image_id: str, project_id: str) -> ImageMember | None:
        """None for one that is there already."""

        def write(connection: Connection) -> ImageMember | None:
            _lock(connection, image_id)
            count = sa.select(sa.func.count()).where(image_members.c.image_uuid == image_id)
            if connection.execute(count).scalar_one() >= _MOST:
                raise TooManyMembersError(f"Image {image_id} has {_MOST} members already.")
            return insert(connection, image_id, project_id)

        return self._database.transact(write)

    def answer(self, image_id: str, project_id: str, status: str) -> ImageMember | None:
        """What the project says to it; None for one that is no member."""
        statement = (
            sa.update(image_members)
            .where(*_is(image_id, project_id))
            .values(status=status, updated_at=utcnow())
            .returning(*_COLUMNS)
        )
        row = self._database.transact(lambda connection: connection.execute(statement).one_or_none())
        return None if row is None else ImageMember(*row)

    def remove(self, image_id: str, project_id: str) -> bool:
        """Whether it was one."""
        statement = sa.delete(image_members).where(*_is(image_id, project_id))
        return bool(self._database.transact(lambda connection: connection.execute(statement).rowcount))


def insert(connection: Connection, image_id: str, project_id: str) -> ImageMember | None:
    """None for one that is there already."""
    statement = insert_if_absent(connection, image_members).values(
        image_uuid=image_id, project_id=project_id, status=PENDING
    )
    row = connection.execute(statement.returning(*_COLUMNS)).one_or_none()
    return None if row is None else ImageMember(*row)


def _is(image_id: str, project_id: str) -> tuple[sa.ColumnElement[bool], ...]:
    return image_members.c.image_uuid == image_id, image_members.c.project_id == project_id


def _lock(connection: Connection, image_id: str) -> None:
    query = sa.select(images.c.uuid).where(images.c.uuid == image_id).with_for_update()
    if connection.execute(query).one_or_none() is None:
        raise ImageNotFoundError(f"Image {image_id} could not be found.")
