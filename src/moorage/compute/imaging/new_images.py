"""The records of images that servers are put into: what is said of them before they have data."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.compute.servers.actions import Origin
from moorage.compute.servers.server import Server
from moorage.images.contract import NewImage

_NEVER_INHERITED = frozenset(
    {
        *("cache_in_nova", "bittorrent"),
        *("cinder_encryption_key_id", "cinder_encryption_key_deletion_policy"),
        *("img_signature", "img_signature_hash_method", "img_signature_key_type"),
        "img_signature_certificate_uuid",
    }
)
_OF_GLANCE = "os_glance"
"""Properties that begin so are Glance's own business."""
SNAPSHOT, BACKUP = "snapshot", "backup"
"""What the property `image_type` says."""


def of(
    server: Server, origin: Origin, image_id: str, name: str, image_type: str, given: Mapping[str, str]
) -> NewImage:
    """Of what is on a server's disk: it inherits what is known of the image that the server was made from.

    It is its maker's, as with the reference; an administrator's is shared with the server's project.
    """
    source = server.request.get("image") or {}
    inherited = {
        name: value
        for name, value in (source.get("properties") or {}).items()
        if name not in _NEVER_INHERITED and not name.startswith(_OF_GLANCE)
    }
    foreign = origin.project_id != server.project_id
    return NewImage(
        name=name,
        project_id=origin.project_id,
        id=image_id,
        visibility="shared" if foreign else "private",
        member=server.project_id if foreign else "",
        min_disk=max(int(source.get("min_disk") or 0), int(server.flavor["disk"])),
        min_ram=int(source.get("min_ram") or 0),
        properties={
            **inherited,
            "base_image_ref": server.image_ref,
            "instance_uuid": server.uuid,
            "user_id": origin.user_id,
            "image_type": image_type,
            **given,
        },
    )


def backup_mark(server_uuid: str, backup_type: str) -> dict[str, str]:
    """The properties by which the backups of one type are known."""
    return {"instance_uuid": server_uuid, "image_type": BACKUP, "backup_type": backup_type}
