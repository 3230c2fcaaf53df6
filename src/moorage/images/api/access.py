"""Who may do what with an image of the built-in catalogue: Glance's rules, under Glance's names."""

from __future__ import annotations

from oslo_policy import policy

from moorage.http.call import Call
from moorage.http.caller import AGENT_ROLE
from moorage.http.errors import HttpError
from moorage.http.policy import Target
from moorage.http.rules import documented
from moorage.images.record import COMMUNITY, PUBLIC, ImageRecord
from moorage.images.service import ImageService

ANYBODY = "@"
ADMIN = "role:admin"
_EVERYWHERE = "role:admin or role:service"
_AGENTS = f"role:{AGENT_ROLE}"
"""They fetch images, and put snapshots into the projects of all servers. With the role `service`, which they
had before, they could also delete any."""
_OFFERED = f"'{PUBLIC}':%(visibility)s or '{COMMUNITY}':%(visibility)s"
OWNER = f"{_EVERYWHERE} or (role:member and project_id:%(project_id)s)"
FILLER = f"{OWNER} or {_AGENTS}"
SHARING = f"{_EVERYWHERE} or {_AGENTS} or project_id:%(project_id)s or project_id:%(member_id)s"
SEEN = f"{SHARING} or {_OFFERED}"
MEMBER = "role:admin or (role:member and project_id:%(member_id)s)"

SEE = "get_image"
ADD_MEMBER = "add_member"
_MODIFY = "PATCH /v2/images/{image_id}"
SET_LOCATION = documented("set_image_location", ADMIN, "Say at which URL the data of an image is.", _MODIFY)
SET_OWNER = documented("set_image_owner", ADMIN, "Give an image to another project.", _MODIFY)
WEB_DOWNLOAD = documented(
    "web_download_image",
    ADMIN,
    "Have the data of an image fetched from a URL.",
    "POST /v2/images/{image_id}/import",
)
OFFER = {
    PUBLIC: documented("publicize_image", ADMIN, "Show an image to everybody.", _MODIFY),
    COMMUNITY: documented("communitize_image", OWNER, "Let everybody use an image.", _MODIFY),
}
FURTHER_RULES: tuple[policy.DocumentedRuleDefault, ...] = (
    SET_LOCATION,
    SET_OWNER,
    WEB_DOWNLOAD,
    *OFFER.values(),
)
"""Asked about by handlers, after they know more."""


def target(record: ImageRecord, member_id: str = "") -> Target:
    """With the caller's project, if the image is shared with it. Nobody's project is called ""."""
    return {"project_id": record.owner or "", "visibility": record.visibility, "member_id": member_id}


def own(call: Call) -> Target:
    return {"project_id": call.caller.project_id or "", "visibility": "", "member_id": ""}


def found(service: ImageService, call: Call) -> ImageRecord:
    """The image that the request is about, if the caller may do with it what the request asks for."""
    record = service.catalogue.record(call.params["image_id"])
    project_id = call.caller.project_id or ""
    admit(call, record, project_id if service.catalogue.is_member(record, project_id) else "")
    return record


def admit(call: Call, record: ImageRecord, member_id: str = "") -> None:
    """A 404 for an image that the caller may not even know of."""
    if not call.allows(SEE, target(record, member_id)):
        raise HttpError(404, f"Image {record.uuid} could not be found.")
    call.admit(target(record, member_id))
