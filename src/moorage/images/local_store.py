"""Images for drivers in the process that keeps the built-in catalogue: nothing is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from moorage.drivers.image_store import ImageStoreError, StoredImage
from moorage.images.catalogue import Catalogue
from moorage.images.contract import ImageNotFoundError
from moorage.images.download import Download
from moorage.images.files import ImageFiles
from moorage.images.record import ACTIVE, ImageRecord
from moorage.images.uploads import ImageBusyError, ImageDataError, ImageTooLargeError, Uploads

_CHUNK = 1024 * 1024


class LocalImageStore:
    def __init__(self, catalogue: Catalogue, files: ImageFiles, uploads: Uploads) -> None:
        self._catalogue = catalogue
        self._files = files
        self._uploads = uploads

    def describe(self, image_id: str) -> StoredImage:
        return _stored(self._record(image_id))

    def download(self, image: StoredImage, target: Path, check: Callable[[], None]) -> None:
        name = self._record(image.id).file
        if name is None:
            raise ImageStoreError(f"image {image.id} ({image.name}) has no data")
        try:
            with self._files.path(name).open("rb") as source, target.open("wb") as file:
                download = Download(image, file, check)
                download.take(_chunks(source), resumed=False)
                download.finish()
        except OSError as error:
            raise ImageStoreError(f"image {image.id} can't be copied: {error}") from error
        if not download.is_whole():
            raise ImageStoreError(f"the data of image {image.id} does not match its checksum any more")

    def upload(self, image_id: str, source: Path, disk_format: str, properties: Mapping[str, str]) -> None:
        if self._record(image_id).status == ACTIVE:
            return
        said = {"disk_format": disk_format, "container_format": "bare"}
        try:
            self._catalogue.change(
                image_id, lambda record: {**said, "properties": {**record.properties, **properties}}
            )
            with source.open("rb") as file:
                self._uploads.receive(image_id, file.read, source.stat().st_size)
        except ImageBusyError as error:
            if self._record(image_id).status != ACTIVE:
                raise ImageStoreError(f"image {image_id} takes no data: {error}") from error
        except (ImageNotFoundError, ImageDataError, ImageTooLargeError, OSError) as error:
            raise ImageStoreError(f"image {image_id} takes no data: {error}") from error

    def _record(self, image_id: str) -> ImageRecord:
        try:
            return self._catalogue.record(image_id)
        except ImageNotFoundError as error:
            raise ImageStoreError(f"image {image_id} is not there") from error


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _stored(record: ImageRecord) -> StoredImage:
    image = record.as_image()
    return StoredImage(
        id=image.id,
        name=image.name,
        status=image.status,
        disk_format=image.disk_format,
        container_format=image.container_format,
        size=image.size,
        hash_algorithm=image.hash_algorithm,
        hash_value=image.hash_value,
        properties=image.properties,
    )
