"""The table of routes of the Image API."""

from __future__ import annotations

from moorage.http.route import Endpoint, Route
from moorage.http.version import VersionRange
from moorage.images.api import changes, data, members, reads, schemas
from moorage.images.api.access import ADD_MEMBER, ANYBODY, FILLER, MEMBER, OWNER, SEE, SEEN, SHARING
from moorage.images.service import ImageService

VERSIONS = VersionRange("image", (2, 0), (2, 0))
"""This API has no microversions; its version documents count on their own."""

E = Endpoint[ImageService]
R = Route[ImageService]

ROUTES: tuple[R, ...] = (
    R("/", {"GET": E(reads.versions)}),
    R("/versions", {"GET": E(reads.version_list)}),
    R("/v2", {"GET": E(reads.versions)}),
    R("/v2/", {"GET": E(reads.versions)}),
    R(
        "/v2/images",
        {
            "GET": E(reads.index, "get_images", ANYBODY),
            "POST": E(changes.create, "add_image", OWNER, target=None, body=schemas.NEW),
        },
    ),
    R(
        "/v2/images/{image_id}",
        {
            "GET": E(reads.show, SEE, SEEN, target=None),
            "PATCH": E(changes.change, "modify_image", FILLER, target=None),
            "DELETE": E(changes.delete, "delete_image", OWNER, target=None),
        },
    ),
    R(
        "/v2/images/{image_id}/tags/{tag}",
        {
            "PUT": E(changes.add_tag, "modify_image", FILLER, target=None),
            "DELETE": E(changes.remove_tag, "modify_image", FILLER, target=None),
        },
    ),
    R(
        "/v2/images/{image_id}/file",
        {
            "GET": E(data.download, "download_image", SEEN, target=None),
            "PUT": E(data.upload, "upload_image", FILLER, target=None),
        },
    ),
    R(
        "/v2/images/{image_id}/members",
        {
            "GET": E(members.index, "get_members", SHARING, target=None),
            "POST": E(members.add, ADD_MEMBER, OWNER, target=None, body=schemas.NEW_MEMBER),
        },
    ),
    R(
        "/v2/images/{image_id}/members/{project_id}",
        {
            "GET": E(members.show, "get_member", SHARING, target=None),
            "PUT": E(members.answer, "modify_member", MEMBER, target=None, body=schemas.MEMBER_ANSWER),
            "DELETE": E(members.remove, "delete_member", OWNER, target=None),
        },
    ),
    R(
        "/v2/images/{image_id}/import",
        {"POST": E(data.fetch, "modify_image", FILLER, target=None, body=schemas.IMPORT)},
    ),
    R("/v2/images/{image_id}/stage", {"PUT": E(data.refuse_stage, "modify_image", FILLER, target=None)}),
    R("/v2/info/import", {"GET": E(reads.import_methods)}),
    R("/v2/schemas/image", {"GET": E(reads.schema(schemas.IMAGE_DOCUMENT))}),
    R("/v2/schemas/images", {"GET": E(reads.schema(schemas.IMAGES_DOCUMENT))}),
    R("/v2/schemas/member", {"GET": E(reads.schema(schemas.MEMBER_DOCUMENT))}),
    R("/v2/schemas/members", {"GET": E(reads.schema(schemas.MEMBERS_DOCUMENT))}),
)
