"""Images for the drivers of an agent, by the Image API: Glance's, or that of the built-in catalogue."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import requests
from oslo_config import cfg
from prometheus_client import Counter

from moorage.core.config import ConfigError
from moorage.drivers.image_store import ImageStoreError, StoredImage
from moorage.images import connect
from moorage.images.contract import ImagesUnavailableError
from moorage.images.download import Download
from moorage.images.glance import OF_GLANCE
from moorage.images.link import PATCH_TYPE, ImageLink, reason

LOG = logging.getLogger(__name__)
T = TypeVar("T")

RETRIES = Counter(
    "moorage_image_transfer_retries_total", "Requests to the Image service that an agent had to repeat."
)
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each further try."""
_SAVING_SECONDS = 600.0
"""For an earlier attempt of ours to end, whose connection the other side may still believe in."""
_POLL_SECONDS = 1.0
_CHUNK = 1024 * 1024


class _Again(Exception):
    """It did not work, and may the next time."""


class ApiImageStore:
    """Late calls are harmless: an image gets data once, and is refused more (409); what is said of it before
    that is the same each time; one that was deleted is not found."""

    def __init__(self, conf: cfg.ConfigOpts, saving_seconds: float = _SAVING_SECONDS) -> None:
        """Credentials are looked at when a driver asks for an image: many never do."""
        self._conf = conf
        self._saving_seconds = saving_seconds

    @cached_property
    def _link(self) -> ImageLink:
        try:
            return connect.link(self._conf)
        except ConfigError as error:
            raise ImageStoreError(f"this agent can't reach images: {error}") from error

    def describe(self, image_id: str) -> StoredImage:
        return _retried(lambda: self._describe(image_id))

    def download(self, image: StoredImage, target: Path, check: Callable[[], None]) -> None:
        with target.open("wb") as file:
            download = Download(image, file, check)
            _retried(lambda: self._fetch(image, download), check)
            download.finish()

    def upload(self, image_id: str, source: Path, disk_format: str, properties: Mapping[str, str]) -> None:
        deadline = time.monotonic() + self._saving_seconds
        _retried(lambda: self._upload(image_id, source, disk_format, properties, deadline))

    def _describe(self, image_id: str) -> StoredImage:
        return _stored(self._asked("GET", image_id, "").json())

    def _fetch(self, image: StoredImage, download: Download) -> None:
        headers = download.range_header()
        with self._asked("GET", image.id, "/file", headers=headers, stream=True, taken=(416,)) as answer:
            if answer.status_code == 204:
                raise ImageStoreError(f"image {image.id} ({image.name}) has no data")
            if answer.status_code != 416:  # there is nothing behind what we have: it is whole, or wrong
                _take(image, answer, download)
        if download.is_short():
            raise _Again(f"the transfer of image {image.id} ended early")
        if not download.is_whole():
            download.restart()
            raise _Again(f"what came of image {image.id} does not match its size or checksum")

    def _upload(
        self, image_id: str, source: Path, disk_format: str, properties: Mapping[str, str], deadline: float
    ) -> None:
        status = self._describe(image_id).status
        while status == "saving" and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            status = self._describe(image_id).status
        if status == "active":
            return
        if status != "queued":
            raise ImageStoreError(f"image {image_id} takes no data: it is {status}")
        said = {**properties, "disk_format": disk_format, "container_format": "bare"}
        patch = [{"op": "add", "path": f"/{_escaped(name)}", "value": value} for name, value in said.items()]
        self._asked("PATCH", image_id, "", headers={"Content-Type": PATCH_TYPE}, json=patch)
        body = _Body(source)
        headers = {"Content-Type": "application/octet-stream"}
        answer = self._asked("PUT", image_id, "/file", headers=headers, data=body, taken=(409,))
        if answer.status_code == 409:
            raise _Again(f"image {image_id} is being written: {reason(answer)}")
        stored = self._describe(image_id)
        if stored.hash_value and stored.hash_value != body.hash_value(stored.hash_algorithm):
            raise ImageStoreError(f"image {image_id} was stored with another checksum than it was sent with")

    def _asked(
        self, method: str, image_id: str, below: str, *, taken: tuple[int, ...] = (), **options: Any
    ) -> requests.Response:
        """An answer that is no refusal, but for the statuses that are `taken`."""
        try:
            answer = self._link.request(method, f"/images/{image_id}{below}", **options)
        except ImagesUnavailableError as error:
            raise _Again(str(error)) from error
        if answer.status_code < 300 or answer.status_code in taken:
            return answer
        if answer.status_code == 404:
            raise ImageStoreError(f"image {image_id} is not there")
        said = f"the Image service refuses {method} of image {image_id}{below}: {reason(answer)}"
        if answer.status_code >= 500 or answer.status_code == 429:
            raise _Again(said)
        raise ImageStoreError(said)


class _Body:
    """A file that is read from its beginning each time it is sent, even if a token had to be renewed."""

    def __init__(self, source: Path) -> None:
        self._source = source

    def __len__(self) -> int:
        return self._source.stat().st_size

    def __iter__(self) -> Iterator[bytes]:
        with self._source.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    def hash_value(self, algorithm: str) -> str:
        with self._source.open("rb") as file:
            return hashlib.file_digest(file, algorithm).hexdigest()


def _retried(work: Callable[[], T], check: Callable[[], None] = lambda: None) -> T:
    for pause in (*_PAUSES, None):
        try:
            return work()
        except _Again as error:
            if pause is None:
                raise ImageStoreError(str(error)) from error
            RETRIES.inc()
            LOG.warning("%s; next try in %g s", error, pause)
            check()
            time.sleep(pause)
            check()
    raise AssertionError("unreachable")


def _take(image: StoredImage, answer: requests.Response, download: Download) -> None:
    try:
        download.take(answer.iter_content(_CHUNK), resumed=answer.status_code == 206)
    except requests.RequestException as error:
        raise _Again(f"the transfer of image {image.id} broke off: {error}") from error
    except OSError as error:
        raise ImageStoreError(f"image {image.id} can't be written: {error}") from error


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _stored(told: dict[str, Any]) -> StoredImage:
    algorithm, value = told.get("os_hash_algo"), told.get("os_hash_value")
    if not (algorithm and value):
        algorithm, value = ("md5", told["checksum"]) if told.get("checksum") else ("", "")
    return StoredImage(
        id=told["id"],
        name=told.get("name") or "",
        status=told["status"],
        disk_format=told.get("disk_format") or "",
        container_format=told.get("container_format") or "",
        size=told.get("size") or 0,
        hash_algorithm=algorithm,
        hash_value=value,
        properties={name: str(value) for name, value in told.items() if name not in OF_GLANCE},
    )
