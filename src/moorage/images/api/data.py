"""The data of images, in and out, as streams."""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Iterator
from typing import BinaryIO

from moorage.http import concurrency
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, no_content
from moorage.images.api import access
from moorage.images.imports import METHODS, ImportRefusedError, TooManyImportsError
from moorage.images.record import ImageRecord
from moorage.images.service import ImageService
from moorage.images.uploads import ImageBusyError, ImageDataError, ImageTooLargeError

LOG = logging.getLogger(__name__)

_BYTES = "application/octet-stream"
_CHUNK = 256 * 1024
_RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)")


def upload(service: ImageService, call: Call) -> Reply:
    """Give an image its data."""
    record = access.found(service, call)
    given = (call.request.content_type or "None").split(";")[0].strip()
    if given != _BYTES:
        raise HttpError(415, f"The media type {given} is not supported, use {_BYTES}")
    read, length = call.stream()
    try:
        with concurrency.waiting(call.request.env):  # nearly all of it is waiting, for the client or the disk
            service.uploads.receive(record.uuid, read, length)
    except ImageDataError as error:
        raise HttpError(400, str(error)) from error
    except ImageBusyError as error:
        raise HttpError(409, str(error)) from error
    except ImageTooLargeError as error:
        raise HttpError(413, str(error)) from error
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise HttpError(413, "There is not enough disk space on the image storage media.") from error
    return no_content()


def fetch(service: ImageService, call: Call) -> Reply:
    """Have an image fetch its data from a URL."""
    record = access.found(service, call)
    asked = call.json()
    method = asked["method"]
    if method["name"] not in METHODS:
        raise HttpError(400, f"Unknown import method name '{method['name']}'.")
    if "uri" not in method:
        raise HttpError(400, "The method web-download needs a uri.")
    if asked.get("stores"):
        raise HttpError(400, "There are no stores to choose from.")
    call.authorize(access.WEB_DOWNLOAD.name, access.target(record))
    try:
        service.imports.begin(record.uuid, method["uri"])
    except (ImageDataError, ImportRefusedError) as error:
        raise HttpError(400, str(error)) from error
    except ImageBusyError as error:
        raise HttpError(409, str(error)) from error
    except TooManyImportsError as error:
        raise HttpError(503, str(error), headers={"retry-after": "60"}) from error
    return Reply(202, b"")


def refuse_stage(service: ImageService, call: Call) -> Reply:
    """Leave the data of an image for a later import: it is sent at once."""
    record = access.found(service, call)
    raise HttpError(400, f"Nothing is staged. Send the data with PUT /v2/images/{record.uuid}/file instead.")


def download(service: ImageService, call: Call) -> Reply:
    """Download the data of an image."""
    record = access.found(service, call)
    if record.file is None or record.size is None:
        return no_content()
    first, last, status = _wanted(call.request.get_header("Range"), record.size)
    headers = {"accept-ranges": "bytes"}
    if status == 206:
        headers["content-range"] = f"bytes {first}-{last}/{record.size}"
    elif record.checksum is not None:
        headers["content-md5"] = record.checksum
    length = last - first + 1
    return Reply(
        status,
        headers=headers,
        content_type=_BYTES,
        stream=_FilePart(_opened(service, record), first, length),
        length=length,
    )


def _opened(service: ImageService, record: ImageRecord) -> BinaryIO:
    try:
        return service.files.path(record.file or "").open("rb")
    except FileNotFoundError as error:
        service.catalogue.record(record.uuid)  # it may have been deleted just now
        LOG.error(
            "the data of image %s is not here: do all that serve this API share the directory %s?",
            record.uuid,
            service.files.directory,
        )
        raise HttpError(503, "The data of the image is not here; see the log.") from error


def _wanted(header: str | None, size: int) -> tuple[int, int, int]:
    """The first byte, the last one, and the status; a range that makes no sense is ignored, as RFC 9110 has
    it, but for one that begins behind the end."""
    found = _RANGE.fullmatch(header or "")
    if found is None or found.groups() == ("", ""):
        return 0, size - 1, 200
    begin, end = found.groups()
    if begin == "":
        first, last = max(0, size - int(end)), size - 1
    else:
        first, last = int(begin), min(int(end), size - 1) if end else size - 1
    if first >= size or last < first:
        raise HttpError(416, "The range is not in the image.", headers={"content-range": f"bytes */{size}"})
    return first, last, 206


class _FilePart:
    """Sent piece by piece, and closed by the server whether it was sent as a whole or not."""

    def __init__(self, file: BinaryIO, first: int, length: int) -> None:
        self._file = file
        self._first = first
        self._length = length

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(self._first)
        left = self._length
        while left > 0 and (chunk := self._file.read(min(_CHUNK, left))):
            left -= len(chunk)
            yield chunk

    def close(self) -> None:
        self._file.close()
