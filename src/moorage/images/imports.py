"""Images whose data is fetched from a URL, which machines that fetch images themselves are told later.

We fetch it once, and so know its checksum: what such a machine gets is held against it. Whoever may have us
fetch something may look into networks that only we reach. So that is for administrators, and for those hosts
that the operator names, if any are named.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
import urllib3
from prometheus_client import Counter

from moorage.images.catalogue import Catalogue
from moorage.images.contract import ImageNotFoundError
from moorage.images.record import ImageRecord
from moorage.images.uploads import ImageDataError, Read, Uploads

LOG = logging.getLogger(__name__)
IMPORTS = Counter("moorage_image_imports_total", "Images fetched from a URL, by outcome.", ["outcome"])

WEB_DOWNLOAD = "web-download"
METHODS = (WEB_DOWNLOAD,)
MOST_AT_ONCE = 4
FAILURE = "import_error"
_LONGEST_FAILURE = 500
_MOST_REDIRECTS = 5
_TIMEOUT = (10.0, 30.0)
"""Seconds for a connection, and for each piece: less than an upload's lease lasts."""


class ImportRefusedError(Exception):
    """The URL is not one that we fetch from."""


class TooManyImportsError(Exception):
    pass


class Imports:
    """Each in a thread of its own. If the process ends, the image waits for its data again."""

    def __init__(self, catalogue: Catalogue, uploads: Uploads, hosts: Collection[str] = ()) -> None:
        """`hosts` are those that may be asked, by their names or as `name:port`; all if none is named."""
        self._catalogue = catalogue
        self._uploads = uploads
        self._hosts = {host.lower() for host in hosts}
        self._free = threading.Semaphore(MOST_AT_ONCE)

    def begin(self, image_id: str, url: str) -> None:
        """From now on the image is being saved; whether it came to be, its status says."""
        self._check(url)
        if not self._free.acquire(blocking=False):
            raise TooManyImportsError(f"{MOST_AT_ONCE} images are being fetched already.")
        try:
            upload = self._uploads.begin(image_id)
        except BaseException:
            self._free.release()
            raise
        self._note(image_id, None)
        given = (image_id, upload, url)
        threading.Thread(target=self._fetch, args=given, name="image-import", daemon=True).start()

    def _fetch(self, image_id: str, upload: str, url: str) -> None:
        """If this process was stopped for long, the upload is another's by then, and nothing is written."""
        try:
            with self._opened(url) as answer:
                self._uploads.fill(image_id, upload, _reader(answer), _length(answer), location=url)
            IMPORTS.labels("done").inc()
            LOG.info("image %s was fetched from %s", image_id, url)
        except ImageNotFoundError:
            LOG.info("image %s was deleted while it was fetched, or fetched by another", image_id)
        except Exception as error:
            IMPORTS.labels("failed").inc()
            LOG.warning("image %s can't be fetched from %s: %s", image_id, url, error)
            self._uploads.give_back(image_id, upload)
            self._note(image_id, str(error))
        finally:
            self._free.release()

    def _note(self, image_id: str, failure: str | None) -> None:
        """Why the last import failed is a property of the image, so that who asked for it sees it."""

        def noted(record: ImageRecord) -> Mapping[str, Any]:
            others = {name: said for name, said in record.properties.items() if name != FAILURE}
            told = {} if failure is None else {FAILURE: failure[:_LONGEST_FAILURE]}
            return {} if others | told == record.properties else {"properties": others | told}

        with suppress(ImageNotFoundError):
            self._catalogue.change(image_id, noted)

    @contextmanager
    def _opened(self, url: str) -> Iterator[requests.Response]:
        """Where it is in the end; each place on the way has to be one that may be asked."""
        at = url
        for _ in range(_MOST_REDIRECTS + 1):
            self._check(at)
            with _asked(at) as answer:
                if not answer.is_redirect:
                    if answer.status_code != 200:
                        raise ImageDataError(f"{at} answered {answer.status_code}.")
                    yield answer
                    return
                at = urljoin(at, answer.headers["location"])
        raise ImageDataError(f"{url} leads on and on.")

    def _check(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ImportRefusedError(f"{url} is no URL that images are fetched from.")
        if self._hosts and not self._hosts & {parts.hostname, parts.netloc.lower()}:
            raise ImportRefusedError(f"Images are not fetched from {parts.hostname}.")


def _asked(url: str) -> requests.Response:
    as_it_is = {"Accept-Encoding": "identity"}
    try:
        return requests.get(url, stream=True, timeout=_TIMEOUT, allow_redirects=False, headers=as_it_is)
    except requests.RequestException as error:
        raise ImageDataError(f"{url} can't be reached: {type(error).__name__}.") from error


def _reader(answer: requests.Response) -> Read:
    def read(count: int) -> bytes:
        try:
            return bytes(answer.raw.read(count))
        except urllib3.exceptions.HTTPError as error:
            raise ImageDataError(f"{answer.url} broke off: {type(error).__name__}.") from error

    return read


def _length(answer: requests.Response) -> int | None:
    told = answer.headers.get("content-length", "")
    return int(told) if told.isdecimal() else None
