"""The read part of the Image API v2: versions, lists, images and schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

from moorage.core.numbers import whole
from moorage.http.call import Call, Query
from moorage.http.errors import HttpError
from moorage.http.reply import Reply
from moorage.images.api.access import SEE, found, target
from moorage.images.api.view import shown
from moorage.images.imports import METHODS
from moorage.images.members import ACCEPTED, STATUSES
from moorage.images.record import COMMUNITY, SHARED, ImageRecord
from moorage.images.service import ImageService

_SUPPORTED = ("v2.2", "v2.1", "v2.0")
_PAGING = {"limit", "marker", "sort", "sort_key", "sort_dir", "member_status", "visibility"}
_SORTABLE = {"name", "status", "id", "size", "created_at", "updated_at", "disk_format", "container_format"}
_MAX_PAGE = 1000
_DEFAULT_PAGE = 25


def versions(_service: ImageService, call: Call) -> Reply:
    """List the versions of this API."""
    return Reply(300, _version_list(call))


def version_list(_service: ImageService, call: Call) -> Reply:
    """List the versions of this API, as an ordinary answer."""
    return Reply(200, _version_list(call))


def _version_list(call: Call) -> dict[str, Any]:
    href = f"{call.request.prefix}/v2/"
    return {
        "versions": [
            {
                "id": name,
                "status": "CURRENT" if index == 0 else "SUPPORTED",
                "links": [{"rel": "self", "href": href}],
            }
            for index, name in enumerate(_SUPPORTED)
        ]
    }


def index(service: ImageService, call: Call) -> Reply:
    """List images."""
    query = call.query
    limit = _limit(query)
    listed = [shown(record) for record in _listed(service, call)]
    listed = [image for image in listed if _matches(image, query)]
    for key, descending in reversed(_order(query)):
        listed.sort(key=_by(key), reverse=descending)
    marker = query.get("marker")
    if marker is not None:
        ids = [image["id"] for image in listed]
        if marker not in ids:
            raise HttpError(400, f"Invalid marker: image {marker} could not be found.")
        listed = listed[ids.index(marker) + 1 :]
    page = listed[:limit]
    body: dict[str, Any] = {"images": page, "schema": "/v2/schemas/images", "first": "/v2/images"}
    if len(listed) > limit and page:
        asked = [pair for pair in query.pairs if pair[0] != "marker"]
        body["next"] = f"/v2/images?{urlencode([('marker', page[-1]['id']), *asked])}"
    return Reply(body=body)


def _by(key: str) -> Callable[[dict[str, Any]], tuple[int, str]]:
    """Numbers in their order, texts in theirs."""

    def place(image: dict[str, Any]) -> tuple[int, str]:
        held = image.get(key)
        return (held, "") if isinstance(held, int) else (0, str(held or ""))

    return place


def _limit(query: Query) -> int:
    given = query.get("limit")
    if given is None:
        return _DEFAULT_PAGE
    limit = whole(given)
    if limit is None:
        raise HttpError(400, "limit param must be an integer")
    return min(limit, _MAX_PAGE)


def _order(query: Query) -> list[tuple[str, bool]]:
    """Sort keys, each with whether it goes down."""
    asked = query.get("sort")
    if asked:
        pairs = [part.partition(":") for part in asked.split(",")]
        order = [(key, direction == "desc") for key, _, direction in pairs]
    else:
        directions = query.all("sort_dir") or ["desc"]
        keys = query.all("sort_key")
        order = [
            (key, directions[min(place, len(directions) - 1)] == "desc") for place, key in enumerate(keys)
        ]
    unknown = [key for key, _ in order if key not in _SORTABLE]
    if unknown:
        raise HttpError(
            400, f"Invalid sort key: {', '.join(unknown)}. Use one of: {', '.join(sorted(_SORTABLE))}."
        )
    return order


def _listed(service: ImageService, call: Call) -> Iterator[ImageRecord]:
    """What the caller sees in lists: images that others offer to everybody are there only if asked for."""
    asked = call.query.get("visibility")
    project_id = call.caller.project_id or ""
    shared = _shared_with(service, project_id, call.query.get("member_status") or ACCEPTED)
    for record in service.catalogue.records():
        if asked not in (None, "all") and record.visibility != asked:
            continue
        others = record.visibility == COMMUNITY and record.owner != project_id
        member_id = project_id if record.visibility == SHARED and record.uuid in shared else ""
        if (not others or asked in (COMMUNITY, "all")) and call.allows(SEE, target(record, member_id)):
            yield record


def _shared_with(service: ImageService, project_id: str, status: str) -> set[str]:
    """The images that others share with a project, if it has said this to them."""
    if status not in (*STATUSES, "all"):
        choices = ", ".join((*STATUSES, "all"))
        raise HttpError(400, f"Invalid status value: {status}. Use one of: {choices}.")
    found = service.members.statuses(project_id)
    return {image_id for image_id, said in found.items() if status in (said, "all")}


def _matches(image: dict[str, Any], query: Query) -> bool:
    return all(_fits(image, name, value) for name, value in query.pairs if name not in _PAGING)


def _fits(image: dict[str, Any], name: str, value: str) -> bool:
    if name in ("size_min", "size_max"):
        bound = whole(value)
        if bound is None:
            raise HttpError(400, f"Invalid {name}: it must be an integer.")
        size = int(image["size"] or 0)
        return size >= bound if name == "size_min" else size <= bound
    if name == "tag":
        return value in image["tags"]
    choices = value[3:].split(",") if value.startswith("in:") else [value.removeprefix("eq:")]
    held = image.get(name)
    shown = str(held).lower() if isinstance(held, bool) else str(held)
    return held is not None and shown in [choice.strip('"') for choice in choices]


def show(service: ImageService, call: Call) -> Reply:
    """Show an image."""
    return Reply(body=shown(found(service, call)))


def import_methods(_service: ImageService, _call: Call) -> Reply:
    """List the ways to import data beside sending it."""
    told = {"description": "Import methods available.", "type": "array", "value": list(METHODS)}
    return Reply(body={"import-methods": told})


def schema(document: dict[str, Any]) -> Callable[[ImageService, Call], Reply]:
    def show_schema(_service: ImageService, _call: Call) -> Reply:
        """Show the schema of what this API answers."""
        return Reply(body=document)

    return show_schema
