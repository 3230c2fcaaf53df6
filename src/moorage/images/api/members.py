"""`/v2/images/{id}/members`: projects that an image is shared with."""

from __future__ import annotations

from typing import Any

from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, no_content
from moorage.images.api import access
from moorage.images.members import ImageMember
from moorage.images.record import SHARED, ImageRecord, api_time
from moorage.images.service import ImageService


def index(service: ImageService, call: Call) -> Reply:
    """List the members of an image; to a member, only itself."""
    record = _shared(service, call)
    found = [_shown(member) for member in service.members.listed(record.uuid) if _sees(call, record, member)]
    return Reply(body={"members": found, "schema": "/v2/schemas/members"})


def show(service: ImageService, call: Call) -> Reply:
    """Show a member of an image."""
    record = _shared(service, call)
    project_id = call.params["project_id"]
    for member in service.members.listed(record.uuid):
        if member.project_id == project_id and _sees(call, record, member):
            return Reply(body=_shown(member))
    raise _no_member(call)


def add(service: ImageService, call: Call) -> Reply:
    """Share an image with a project."""
    project_id = call.json()["member"]
    record = _shared(service, call)
    member = service.members.add(record.uuid, project_id)
    if member is None:
        raise HttpError(409, f"Member {project_id} is duplicated for image {record.uuid}")
    return Reply(body=_shown(member))


def answer(service: ImageService, call: Call) -> Reply:
    """Accept an image that is shared with one's project, or reject it."""
    status = call.json()["status"]
    record = _shared(service, call)
    project_id = call.params["project_id"]
    may = project_id == call.caller.project_id or _manages(call, record)
    member = service.members.answer(record.uuid, project_id, status) if may else None
    if member is None:
        raise _no_member(call)
    return Reply(body=_shown(member))


def remove(service: ImageService, call: Call) -> Reply:
    """Share an image with a project no longer."""
    record = _shared(service, call)
    if not service.members.remove(record.uuid, call.params["project_id"]):
        raise _no_member(call)
    return no_content()


def _shared(service: ImageService, call: Call) -> ImageRecord:
    """The image, if the caller may do with its members what the request asks for, and if it has any."""
    record = access.found(service, call)
    if record.visibility != SHARED:
        raise HttpError(403, "Only shared images have members.")
    return record


def _sees(call: Call, record: ImageRecord, member: ImageMember) -> bool:
    return call.caller.project_id in (record.owner, member.project_id) or _manages(call, record)


def _manages(call: Call, record: ImageRecord) -> bool:
    return call.allows(access.ADD_MEMBER, access.target(record))


def _no_member(call: Call) -> HttpError:
    project_id, image_id = call.params["project_id"], call.params["image_id"]
    return HttpError(404, f"{project_id} not found in the member list of the image {image_id}.")


def _shown(member: ImageMember) -> dict[str, Any]:
    return {
        "image_id": member.image_uuid,
        "member_id": member.project_id,
        "status": member.status,
        "created_at": api_time(member.created_at),
        "updated_at": api_time(member.updated_at),
        "schema": "/v2/schemas/member",
    }
