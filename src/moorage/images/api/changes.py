"""The write part of the Image API v2, as far as records go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.core import uuids
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, no_content
from moorage.images.api import access, schemas
from moorage.images.api.patch import Location, PatchedImage
from moorage.images.api.view import shown
from moorage.images.imports import METHODS
from moorage.images.link import PATCH_TYPE
from moorage.images.record import ACTIVE, QUEUED, SHARED, ImageRecord
from moorage.images.service import ImageService

_OF_COLUMNS = {"os_hidden": "hidden"}
"""Where a column is called otherwise than in the API."""


def create(service: ImageService, call: Call) -> Reply:
    """Make the record of an image, which waits for its data."""
    given = call.json()
    call.admit(access.own(call))
    _refuse_read_only(given)
    owner = given.get("owner") or call.caller.project_id
    if owner != call.caller.project_id:
        call.authorize(access.SET_OWNER.name, access.own(call))
    visibility = given.get("visibility", SHARED)
    _may_offer(call, visibility, owner)
    image_id = given.get("id") or uuids.generate()
    row = {
        **_columns({name: value for name, value in given.items() if name != "id"}),
        "uuid": image_id,
        "name": given.get("name") or "",
        "owner": owner,
        "visibility": visibility,
    }
    if not service.catalogue.add(row):
        raise HttpError(409, f"Image ID {image_id} already exists!")
    made = service.catalogue.record(image_id)
    ways = {"openstack-image-import-methods": ",".join(METHODS)}
    return Reply(201, shown(made), headers={**call.location(f"/v2/images/{image_id}"), **ways})


def change(service: ImageService, call: Call) -> Reply:
    """Change what is said of an image."""
    found = access.found(service, call)
    given_type = (call.request.content_type or "None").split(";")[0].strip()
    if given_type != PATCH_TYPE:
        raise HttpError(415, f"The media type {given_type} is not supported, use {PATCH_TYPE}")
    patch = schemas.PATCH.load(call.body())

    def changed(record: ImageRecord) -> Mapping[str, Any]:
        access.admit(call, record)
        patched = PatchedImage(record, _given(record))
        for step in patch:
            patched.apply(step)
        return _allowed(call, record, patched)

    return Reply(body=shown(service.catalogue.change(found.uuid, changed)))


def delete(service: ImageService, call: Call) -> Reply:
    """Delete an image."""
    record = access.found(service, call)
    service.catalogue.delete(record.uuid)
    if record.file is not None:  # should we end before this, it is swept
        service.files.remove(record.file)
    return no_content()


def add_tag(service: ImageService, call: Call) -> Reply:
    """Tag an image."""
    tag = call.params["tag"]
    if len(tag) > schemas.LONGEST_TAG:
        raise HttpError(400, f"A tag has at most {schemas.LONGEST_TAG} characters.")

    def tagged(record: ImageRecord) -> Mapping[str, Any]:
        tags = record.tags or []
        if len(tags) >= schemas.MOST_TAGS and tag not in tags:
            raise HttpError(413, f"An image has at most {schemas.MOST_TAGS} tags.")
        return {"tags": sorted({*tags, tag})}

    service.catalogue.change(access.found(service, call).uuid, tagged)
    return no_content()


def remove_tag(service: ImageService, call: Call) -> Reply:
    """Take a tag from an image."""
    tag = call.params["tag"]

    def untagged(record: ImageRecord) -> Mapping[str, Any]:
        if tag not in (record.tags or []):
            raise HttpError(404, f"Image {record.uuid} has no tag {tag}.")
        return {"tags": [kept for kept in record.tags or [] if kept != tag]}

    service.catalogue.change(access.found(service, call).uuid, untagged)
    return no_content()


def _allowed(call: Call, record: ImageRecord, patched: PatchedImage) -> Mapping[str, Any]:
    """The row of a changed image, unless it makes no sense, or the caller may not change it so."""
    given = patched.given
    problem = schemas.CHANGED.problem(given)
    if problem is not None:
        raise HttpError(400, f"Provided object does not match schema 'image': {problem.message}")
    if given["owner"] != record.owner:
        call.authorize(access.SET_OWNER.name, access.target(record))
    if given["visibility"] != record.visibility:
        _may_offer(call, given["visibility"], record.owner)
    formats = ("disk_format", "container_format")
    if record.status != QUEUED and any(given[name] != getattr(record, name) for name in formats):
        raise HttpError(403, "Attribute disk_format can be only replaced for a queued image.")
    return {**_columns(given), **_data_of(call, record, patched.location)}


def _data_of(call: Call, record: ImageRecord, location: Location | None) -> Mapping[str, Any]:
    if location is None:
        return {}
    call.authorize(access.SET_LOCATION.name, access.target(record))
    if record.status != QUEUED:
        raise HttpError(409, f"Image {record.uuid} has data already.")
    return {
        "status": ACTIVE,
        "location": location.url,
        "checksum": location.checksum,
        "os_hash_algo": location.hash_algorithm,
        "os_hash_value": location.hash_value,
    }


def _given(record: ImageRecord) -> dict[str, Any]:
    """What callers have said of an image, as the API names it."""
    return {
        **record.properties,
        **{name: getattr(record, _OF_COLUMNS.get(name, name)) for name in schemas.GIVEN if name != "tags"},
        "tags": list(record.tags or []),
    }


def _columns(given: Mapping[str, Any]) -> dict[str, Any]:
    fixed = {_OF_COLUMNS.get(name, name): value for name, value in given.items() if name in schemas.GIVEN}
    properties = {name: value for name, value in given.items() if name not in schemas.GIVEN}
    if "tags" in fixed:
        fixed["tags"] = sorted(set(fixed["tags"]))
    return {**fixed, "name": fixed.get("name") or "", "properties": properties}


def _may_offer(call: Call, visibility: str, owner: str | None) -> None:
    rule = access.OFFER.get(visibility)
    if rule is not None:
        call.authorize(rule.name, {"project_id": owner or "", "visibility": visibility})


def _refuse_read_only(given: Mapping[str, Any]) -> None:
    for name in sorted(schemas.READ_ONLY & given.keys()):
        raise HttpError(403, f"Attribute '{name}' is read-only.")
