"""Glance: images looked up with the token of who wants to boot from them, so that Glance decides who may."""

from __future__ import annotations

from typing import Any

from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1.adapter import Adapter

from moorage.core import openstack_services
from moorage.images.contract import Image, ImageNotFoundError, ImagesUnavailableError

_OF_GLANCE = frozenset(
    {
        *("id", "name", "status", "min_ram", "min_disk", "size", "virtual_size", "self", "file", "schema"),
        *("tags", "owner", "visibility", "protected", "os_hidden"),
        *("checksum", "os_hash_algo", "os_hash_value"),
        *("created_at", "updated_at", "disk_format", "container_format", "locations", "direct_url", "stores"),
    }
)
"""What Glance says of every image; all else are properties that somebody gave it."""


class GlanceImages:
    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def find(self, image_id: str, token: str | None = None) -> Image:
        headers = {} if token is None else {"X-Auth-Token": token}
        try:
            path = f"{openstack_services.versioned(self._adapter, '/v2')}/images/{image_id}"
            answer = self._adapter.get(path, headers=headers, raise_exc=False, authenticated=token is None)
        except keystone_errors.ClientException as error:
            raise ImagesUnavailableError(f"Glance can't be reached: {error}") from error
        if answer.status_code in (400, 403, 404):
            raise ImageNotFoundError(f"Image {image_id} could not be found.")
        if answer.status_code != 200:
            raise ImagesUnavailableError(f"Glance fails to tell of image {image_id}: {answer.status_code}")
        return _image(answer.json())


def _image(told: dict[str, Any]) -> Image:
    return Image(
        id=told["id"],
        name=told.get("name") or "",
        status=told["status"],
        min_ram=told.get("min_ram") or 0,
        min_disk=told.get("min_disk") or 0,
        size=told.get("size") or 0,
        properties={name: str(value) for name, value in told.items() if name not in _OF_GLANCE},
    )
