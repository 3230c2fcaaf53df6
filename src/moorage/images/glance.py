"""Glance: images looked up with the token of who wants to boot from them, so that Glance decides who may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests

from moorage.images.contract import (
    Image,
    ImageNotFoundError,
    ImageRefusedError,
    ImagesUnavailableError,
    NewImage,
)
from moorage.images.link import ImageLink, reason

OF_GLANCE = frozenset(
    {
        *("id", "name", "status", "min_ram", "min_disk", "size", "virtual_size", "self", "file", "schema"),
        *("tags", "owner", "visibility", "protected", "os_hidden"),
        *("checksum", "os_hash_algo", "os_hash_value"),
        *("created_at", "updated_at", "disk_format", "container_format", "locations", "direct_url", "stores"),
    }
)
"""What Glance says of every image; all else are properties that somebody gave it."""


class GlanceImages:
    def __init__(self, link: ImageLink) -> None:
        self._link = link

    def find(self, image_id: str, token: str | None = None, project_id: str | None = None) -> Image:
        answer = self._link.request("GET", f"/images/{image_id}", token)
        if answer.status_code in (400, 403, 404):
            raise ImageNotFoundError(f"Image {image_id} could not be found.")
        if answer.status_code != 200:
            raise ImagesUnavailableError(f"Glance fails to tell of image {image_id}: {answer.status_code}")
        return image_of(answer.json())

    def create(self, new: NewImage, token: str | None = None) -> str:
        """Late, it makes a record without data under an id that nobody else uses: whoever gave up on it
        deletes that id, and Glance gives none out a second time."""
        answer = self._link.request("POST", "/images", token, json=_body(new, as_owner=token is not None))
        if answer.status_code == 409 and new.id:
            made = new.id
        else:
            _require(answer, 201, f"make image {new.name}")
            made = answer.json()["id"]
        if new.member:
            self._share(made, new.member, token)
        return made

    def _share(self, image_id: str, project_id: str, token: str | None) -> None:
        """Late, it shares what was to be shared; one that is a member already is fine."""
        wish = {"member": project_id}
        answer = self._link.request("POST", f"/images/{image_id}/members", token, json=wish)
        if answer.status_code != 409:
            _require(answer, 200, f"share image {image_id}")

    def delete(self, image_id: str, token: str | None = None) -> None:
        """Late, it finds nothing: ids are never used again."""
        answer = self._link.request("DELETE", f"/images/{image_id}", token)
        if answer.status_code != 404:
            _require(answer, 204, f"delete image {image_id}")

    def select(
        self, properties: Mapping[str, str], token: str | None = None, project_id: str | None = None
    ) -> list[Image]:
        owned = {} if project_id is None else {"owner": project_id}
        query = {**properties, **owned, "sort_key": "created_at", "sort_dir": "desc"}
        return [image_of(told) for told in self._link.listed(query, token)]


def _require(answer: requests.Response, status: int, what: str) -> None:
    if answer.status_code == status:
        return
    if answer.status_code in (400, 403, 409, 413):
        raise ImageRefusedError(f"Glance refuses to {what}: {reason(answer)}")
    raise ImagesUnavailableError(f"Glance fails to {what}: {answer.status_code}")


def _body(new: NewImage, *, as_owner: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        **new.properties,
        "name": new.name,
        "visibility": new.visibility,
        "min_disk": new.min_disk,
        "min_ram": new.min_ram,
    }
    if not as_owner:  # only administrators may name another owner than themselves
        body["owner"] = new.project_id
    if new.id:
        body["id"] = new.id
    if new.disk_format:
        body["disk_format"] = new.disk_format
    if new.container_format:
        body["container_format"] = new.container_format
    return body


def image_of(told: dict[str, Any]) -> Image:
    return Image(
        id=told["id"],
        name=told.get("name") or "",
        status=told["status"],
        min_ram=told.get("min_ram") or 0,
        min_disk=told.get("min_disk") or 0,
        size=told.get("size") or 0,
        properties={name: str(value) for name, value in told.items() if name not in OF_GLANCE},
        disk_format=told.get("disk_format") or "",
        container_format=told.get("container_format") or "",
        created_at=told.get("created_at") or "",
        hash_algorithm=told.get("os_hash_algo") or "",
        hash_value=told.get("os_hash_value") or "",
        owner=told.get("owner") or "",
    )
