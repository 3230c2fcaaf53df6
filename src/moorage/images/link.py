"""Requests to an Image API: Glance's, or that of the built-in catalogue, with a token or our credentials."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import requests
from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1.adapter import Adapter

from moorage.core import context, openstack_services
from moorage.images.contract import ImagesUnavailableError

Json = dict[str, Any]

PATCH_TYPE = "application/openstack-images-v2.1-json-patch"
_PAGE = 100
_TAG = re.compile(r"<title>.*?</title>|<[^>]*>", re.DOTALL)
_MOST_WORDS = 300
"""Characters of what an Image service says that are passed on."""


class ImageLink:
    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def request(
        self,
        method: str,
        path: str,
        token: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> requests.Response:
        """The answer, whatever its status; `path` is below `/v2`."""
        credentials = {} if token is None else {"X-Auth-Token": token}
        sent = {**context.request_headers(), **(headers or {}), **credentials}
        try:
            begin = openstack_services.versioned(self._adapter, "/v2")
            answer = self._adapter.request(
                f"{begin}{path}",
                method,
                headers=sent,
                raise_exc=False,
                authenticated=token is None,
                **options,
            )
        except keystone_errors.ClientException as error:
            raise ImagesUnavailableError(f"Glance can't be reached: {error}") from error
        return answer

    def listed(self, query: Mapping[str, str], token: str | None = None) -> Iterator[Json]:
        """All images that match, page by page."""
        asked = {**query, "limit": str(_PAGE)}
        while True:
            answer = self.request("GET", "/images", token, params=asked)
            if answer.status_code != 200:
                raise ImagesUnavailableError(f"Glance does not list images: {reason(answer)}")
            page: list[Json] = answer.json()["images"]
            yield from page
            if "next" not in answer.json() or not page:
                return
            asked["marker"] = page[-1]["id"]


def reason(answer: requests.Response) -> str:
    """The status and the words of a refusal: Glance sends a page, whose tags say nothing."""
    return f"{answer.status_code} {' '.join(_TAG.sub(' ', answer.text).split())[:_MOST_WORDS]}"
