"""The read part of the Image API v2, as far as clients that boot servers need it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from moorage.core.numbers import whole
from moorage.http.call import Call, Query
from moorage.http.errors import HttpError
from moorage.http.reply import Reply
from moorage.http.route import Endpoint, Route
from moorage.http.version import VersionRange
from moorage.images.catalogue import Catalogue, ImageRecord

VERSIONS = VersionRange("image", (2, 0), (2, 0))
"""This API has no microversions; its version documents count on their own."""

_SUPPORTED = ("v2.2", "v2.1", "v2.0")
_PAGING = {"limit", "marker", "sort", "sort_key", "sort_dir", "member_status", "visibility"}
_SORTABLE = {"name", "status", "id", "size", "created_at", "updated_at", "disk_format", "container_format"}
_MAX_PAGE = 1000
_DEFAULT_PAGE = 25


def versions(_catalogue: Catalogue, call: Call) -> Reply:
    """List the versions of this API."""
    return Reply(300, _version_list(call))


def version_list(_catalogue: Catalogue, call: Call) -> Reply:
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


def index(catalogue: Catalogue, call: Call) -> Reply:
    """List images."""
    query = call.query
    limit = _limit(query)
    found = [_body(record) for record in catalogue.records() if _matches(record, query)]
    for key, descending in reversed(_order(query)):
        found.sort(key=_by(key), reverse=descending)
    marker = query.get("marker")
    if marker is not None:
        ids = [image["id"] for image in found]
        if marker not in ids:
            raise HttpError(400, f"Invalid marker: image {marker} could not be found.")
        found = found[ids.index(marker) + 1 :]
    page = found[:limit]
    body: dict[str, Any] = {"images": page, "schema": "/v2/schemas/images", "first": "/v2/images"}
    if len(found) > limit and page:
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


def _matches(record: ImageRecord, query: Query) -> bool:
    image = _body(record)
    visibility = query.get("visibility")
    if visibility is not None and visibility not in ("public", "all"):
        return False
    return all(_fits(image, name, value) for name, value in query.pairs if name not in _PAGING)


def _fits(image: dict[str, Any], name: str, value: str) -> bool:
    if name in ("size_min", "size_max"):
        bound = whole(value)
        if bound is None:
            raise HttpError(400, f"Invalid {name}: it must be an integer.")
        size = int(image["size"])
        return size >= bound if name == "size_min" else size <= bound
    if name == "tag":
        return value in image["tags"]
    choices = value[3:].split(",") if value.startswith("in:") else [value.removeprefix("eq:")]
    held = image.get(name)
    shown = str(held).lower() if isinstance(held, bool) else str(held)
    return held is not None and shown in [choice.strip('"') for choice in choices]


def show(catalogue: Catalogue, call: Call) -> Reply:
    """Show an image."""
    return Reply(body=_body(catalogue.record(call.params["image_id"])))


def download(catalogue: Catalogue, call: Call) -> Reply:
    """Download an image: the built-in catalogue has records only."""
    catalogue.record(call.params["image_id"])
    return Reply(204)


def members(catalogue: Catalogue, call: Call) -> Reply:
    """List with whom an image is shared: public ones with nobody in particular."""
    catalogue.record(call.params["image_id"])
    return Reply(body={"members": [], "schema": "/v2/schemas/members"})


def read_only(_catalogue: Catalogue, _call: Call) -> Reply:
    """Refuse to change the built-in catalogue."""
    raise HttpError(403, "The built-in image catalogue can't be changed; use an Image service.")


def _schema(document: dict[str, Any]) -> Callable[[Catalogue, Call], Reply]:
    def show_schema(_catalogue: Catalogue, _call: Call) -> Reply:
        """Show the schema of what this API answers."""
        return Reply(body=document)

    return show_schema


def _body(record: ImageRecord) -> dict[str, Any]:
    created = record.created_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "min_ram": 0,
        "min_disk": 0,
        "size": 0,
        **record.properties,
        "id": record.uuid,
        "name": record.name,
        "status": "active",
        "visibility": "public",
        "protected": True,
        "os_hidden": False,
        "owner": None,
        "checksum": None,
        "tags": [],
        "created_at": created,
        "updated_at": created,
        "self": f"/v2/images/{record.uuid}",
        "file": f"/v2/images/{record.uuid}/file",
        "schema": "/v2/schemas/image",
    }


_TEXT = {"type": ["null", "string"]}
_NUMBER = {"type": ["null", "integer"]}
_IMAGE_SCHEMA: dict[str, Any] = {
    "name": "image",
    "properties": {
        **dict.fromkeys(("id", "name", "status", "visibility", "owner", "checksum", "disk_format"), _TEXT),
        **dict.fromkeys(("container_format", "created_at", "updated_at", "self", "file", "schema"), _TEXT),
        **dict.fromkeys(("size", "min_ram", "min_disk"), _NUMBER),
        "protected": {"type": "boolean"},
        "os_hidden": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": {"type": "string"},
    "links": [{"href": "{self}", "rel": "self"}, {"href": "{schema}", "rel": "describedby"}],
}
_IMAGES_SCHEMA: dict[str, Any] = {
    "name": "images",
    "properties": {
        "images": {"type": "array", "items": _IMAGE_SCHEMA},
        **dict.fromkeys(("first", "next", "schema"), _TEXT),
    },
    "links": [{"href": "{first}", "rel": "first"}, {"href": "{next}", "rel": "next"}],
}

E = Endpoint[Catalogue]
R = Route[Catalogue]
_READ = "get_images"
_ANYBODY = "@"

ROUTES: tuple[R, ...] = (
    R("/", {"GET": E(versions)}),
    R("/versions", {"GET": E(version_list)}),
    R("/v2", {"GET": E(versions)}),
    R("/v2/", {"GET": E(versions)}),
    R(
        "/v2/images",
        {"GET": E(index, _READ, _ANYBODY), "POST": E(read_only, "add_image", _ANYBODY)},
    ),
    R(
        "/v2/images/{image_id}",
        {
            "GET": E(show, "get_image", _ANYBODY),
            "PATCH": E(read_only, "modify_image", _ANYBODY),
            "DELETE": E(read_only, "delete_image", _ANYBODY),
        },
    ),
    R(
        "/v2/images/{image_id}/file",
        {
            "GET": E(download, "download_image", _ANYBODY),
            "PUT": E(read_only, "upload_image", _ANYBODY),
        },
    ),
    R("/v2/images/{image_id}/members", {"GET": E(members, "get_members", _ANYBODY)}),
    R("/v2/schemas/image", {"GET": E(_schema(_IMAGE_SCHEMA))}),
    R("/v2/schemas/images", {"GET": E(_schema(_IMAGES_SCHEMA))}),
)
