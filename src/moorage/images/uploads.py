"""How an image of the built-in catalogue gets its data: queued → saving → active, or queued again.

An upload holds a lease on its image, which it renews while data comes. One that ends in the middle gives it
back; one whose process dies loses it, and the next upload takes the image over. The row is written last, and
only by who has the lease.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, BinaryIO

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.db.tables.images import images
from moorage.images import files as image_files
from moorage.images.contract import ImageNotFoundError
from moorage.images.files import ImageFiles
from moorage.images.record import ACTIVE, HASH, QUEUED, SAVING

LOG = logging.getLogger(__name__)

LEASE_SECONDS = 60.0
_RENEW_SECONDS = 10.0
_IDLE_SECONDS = 600.0
"""After which a file that no row names is nobody's."""
_CHUNK = 1024 * 1024

Read = Callable[[int], bytes]
"""Up to so many bytes of the data; none at its end. OSError if it breaks off."""


class ImageBusyError(Exception):
    """The image has data already, or is getting it."""


class ImageTooLargeError(Exception):
    pass


class ImageDataError(Exception):
    """The image can't take data yet, or not this."""


class Uploads:
    def __init__(self, database: Database, files: ImageFiles, max_size: int) -> None:
        self._database = database
        self._files = files
        self._max_size = max_size

    def receive(self, image_id: str, read: Read, length: int | None) -> None:
        """Give the image what `read` gives. If that breaks off, it is as it was, and no file is left."""
        if length is not None and length > self._max_size:
            raise self._too_large()
        self.fill(image_id, self.begin(image_id), read, length)

    def begin(self, image_id: str) -> str:
        """The image is being saved from now on, by who names what this answers with."""
        upload = uuids.generate()
        self._database.transact(lambda connection: _take(connection, image_id, upload))
        return upload

    def fill(
        self, image_id: str, upload: str, read: Read, length: int | None, location: str | None = None
    ) -> None:
        """As `receive`, for an upload that has begun; with `location`, machines find the data there, too."""
        name = image_files.name_of(image_id, upload)
        try:
            if length is not None and length > self._max_size:
                raise self._too_large()
            with self._files.write(name) as file:
                values = self._copy(read, length, file, lambda: self._renew(image_id, upload))
                self._files.finish(name, file)
        except BaseException:
            self._files.remove(name)
            self.give_back(image_id, upload)
            raise
        self._end(image_id, upload, {"status": ACTIVE, "file": name, "location": location, **values})

    def sweep(self) -> int:
        """Remove the files that no row names; how many. Of several processes that do it, each may."""
        return self._remove_unused(self._files.idle(_IDLE_SECONDS))

    def _remove_unused(self, idle: Sequence[str]) -> int:
        if not idle:
            return 0
        with self._database.read() as connection:  # after the files: a row that came since names its own
            named = set(connection.execute(sa.select(images.c.file)).scalars())
        unused = [name for name in idle if name not in named]
        for name in unused:
            self._files.remove(name)
        if unused:
            LOG.info("removed %d files of images that are gone, or of uploads that ended early", len(unused))
        return len(unused)

    def forget(self) -> None:
        """For a process that has the database to itself, when it starts: no upload is under way."""
        ended = sa.update(images).where(images.c.status == SAVING).values(status=QUEUED, upload=None)
        self._database.transact(lambda connection: connection.execute(ended))
        self._remove_unused(self._files.idle(0.0))

    def _copy(
        self, read: Read, length: int | None, file: BinaryIO, renew: Callable[[], None]
    ) -> dict[str, Any]:
        size, renewed = 0, time.monotonic()
        checksum, secure = hashlib.md5(usedforsecurity=False), hashlib.new(HASH)
        while chunk := read(_CHUNK):
            size += len(chunk)
            if size > self._max_size:
                raise self._too_large()
            file.write(chunk)
            checksum.update(chunk)
            secure.update(chunk)
            if time.monotonic() - renewed > _RENEW_SECONDS:
                renew()
                renewed = time.monotonic()
        if length is not None and size != length:
            raise ImageDataError(f"The data ended after {size} of {length} bytes.")
        return {
            "size": size,
            "checksum": checksum.hexdigest(),
            "os_hash_algo": HASH,
            "os_hash_value": secure.hexdigest(),
        }

    def _renew(self, image_id: str, upload: str) -> None:
        self._write(image_id, upload, {"upload_seen_at": utcnow()})

    def _end(self, image_id: str, upload: str, values: dict[str, Any]) -> None:
        """If the database fails here, the row may name the file: whether it does, the sweep finds out."""
        try:
            self._write(image_id, upload, {**values, "upload": None, "updated_at": utcnow()})
        except ImageNotFoundError:
            self._files.remove(image_files.name_of(image_id, upload))
            raise

    def _write(self, image_id: str, upload: str, values: dict[str, Any]) -> None:
        ours = sa.and_(images.c.uuid == image_id, images.c.upload == upload)
        update = sa.update(images).where(ours).values(values)
        if not self._database.transact(lambda connection: connection.execute(update).rowcount):
            raise ImageNotFoundError(f"Image {image_id} is gone, or another upload has taken it over.")

    def give_back(self, image_id: str, upload: str) -> None:
        """It waits for its data again."""
        ours = sa.and_(images.c.uuid == image_id, images.c.upload == upload, images.c.status == SAVING)
        update = sa.update(images).where(ours).values(status=QUEUED, upload=None)
        self._database.transact(lambda connection: connection.execute(update))

    def _too_large(self) -> ImageTooLargeError:
        return ImageTooLargeError(f"An image may have {self._max_size} bytes; see [images] max_size.")


def _take(connection: Connection, image_id: str, upload: str) -> None:
    columns = (images.c.status, images.c.upload_seen_at, images.c.disk_format, images.c.container_format)
    query = sa.select(*columns).where(images.c.uuid == image_id).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        raise ImageNotFoundError(f"Image {image_id} could not be found.")
    status, seen_at, *formats = row
    now = utcnow()
    abandoned = status == SAVING and (seen_at is None or now - seen_at > timedelta(seconds=LEASE_SECONDS))
    if status != QUEUED and not abandoned:
        raise ImageBusyError(f"Image status transition from {status} to saving is not allowed")
    if None in formats:
        raise ImageDataError("Properties disk_format, container_format must be set prior to saving data.")
    values = {"status": SAVING, "upload": upload, "upload_seen_at": now}
    connection.execute(sa.update(images).where(images.c.uuid == image_id).values(values))
