"""The actions `createImage` and `createBackup`: the record of the image, and what they answer."""

from __future__ import annotations

from typing import Any

from moorage.compute.errors import ForbiddenError, UnavailableError
from moorage.compute.imaging import new_images, snapshots
from moorage.compute.imaging.snapshots import BackupPlan
from moorage.compute.quotas.overruns import require_room
from moorage.compute_api import links
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.servers.action_request import ActionRequest
from moorage.compute_api.servers.servers import find
from moorage.compute_api.service import ComputeService
from moorage.core import uuids
from moorage.http.call import Call
from moorage.http.reply import Reply, empty
from moorage.images.contract import ImageRefusedError, ImagesUnavailableError, NewImage


def choose_id(service: ComputeService, call: Call, _argument: Any) -> str:
    """The image's: whoever goes on after a crash knows by it what there is to clean up."""
    with service.database.read() as connection:
        find(connection, call)
    return uuids.generate()


def create_image(asked: ActionRequest) -> Reply:
    _require_few(asked)
    snapshots.snapshot(asked.connection, asked.server, asked.origin, asked.found)
    return _answer(asked)


def create_backup(asked: ActionRequest) -> Reply:
    _require_few(asked)
    plan = BackupPlan(asked.argument["backup_type"], int(asked.argument["rotation"]))
    snapshots.backup(asked.connection, asked.server, asked.origin, asked.found, plan)
    if asked.call.version < Microversion.IMAGE_ID_IN_BODY and not plan.rotation:
        return empty(202)
    return _answer(asked)


def _answer(asked: ActionRequest) -> Reply:
    if asked.call.version >= Microversion.IMAGE_ID_IN_BODY:
        return Reply(202, {"image_id": asked.found})
    return Reply(202, b"", headers={"location": links.of(asked.call, "images", asked.found)[1]["href"]})


def _require_few(asked: ActionRequest) -> None:
    if asked.call.version >= Microversion.NO_IMAGE_METADATA:
        return
    given = asked.argument.get("metadata", {})
    require_room(asked.limits(), "metadata_items", 0, len(given), "Image metadata limit exceeded")


def record_snapshot(asked: ActionRequest) -> None:
    record(asked, _described(asked, new_images.SNAPSHOT, {}))


def record_backup(asked: ActionRequest) -> None:
    kind = {"backup_type": asked.argument["backup_type"]}
    record(asked, _described(asked, new_images.BACKUP, kind))


def _described(asked: ActionRequest, image_type: str, more: dict[str, str]) -> NewImage:
    name, given = asked.argument["name"].strip(), asked.argument.get("metadata", {})
    return new_images.of(asked.server, asked.origin, asked.found, name, image_type, {**given, **more})


def record(asked: ActionRequest, new: NewImage) -> None:
    """Make the record as whoever asks: what they may, the Image service decides."""
    database = asked.service.database
    try:
        asked.service.images.create(new, asked.call.caller.token)
    except (ImageRefusedError, ImagesUnavailableError) as error:
        why = str(error)
        database.transact(lambda connection: snapshots.withdraw(connection, asked.server, why))
        if isinstance(error, ImageRefusedError):
            raise ForbiddenError(why) from error
        raise UnavailableError("The image service does not answer. Try again later.") from error
    database.transact(lambda connection: snapshots.go_on(connection, asked.server))
