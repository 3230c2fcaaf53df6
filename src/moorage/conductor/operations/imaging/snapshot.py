"""Snapshots of servers: images that their users ask for, and backups, of which the oldest go.

begin → take → taken; a backup goes on with rotate (those of its type beyond the number to keep go)
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

from moorage.compute.imaging import new_images
from moorage.compute.servers.states import TaskState
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.imaging.imaging import WHILE_DISK_IS_SENT, Imaging, ImagingState
from moorage.images.contract import Image, ImageNotFoundError, ImageRefusedError
from moorage.ledger.declared import GIVE_UP, Step, refused

LOG = logging.getLogger(__name__)


class Snapshot(Imaging[ImagingState]):
    name = "snapshot"
    steps: ClassVar[tuple[Step, ...]] = (
        Step("begin", then=("take",), cancel=GIVE_UP),
        Step("take", then=("taken",), cancel=GIVE_UP),
        Step("taken", then=("take",), waits=WHILE_DISK_IS_SENT, cancel=GIVE_UP),
    )
    notification = "snapshot"
    event = "compute_snapshot_instance"

    def go(self, work: Work[Any]) -> None:
        work.changes["task_state"] = TaskState.IMAGE_UPLOADING.value
        work.advance("take")

    def kept(self, work: Work[Any]) -> None:
        work.changes["task_state"] = None
        self.note(work)
        work.finish()


class BackupState(ImagingState, kw_only=True):
    backup_type: str
    rotation: int
    """How many are kept, this one counted."""


class Backup(Snapshot):
    name = "backup"
    state = BackupState
    steps = (
        Step("begin", then=("take",), cancel=GIVE_UP),
        Step("take", then=("taken",), cancel=GIVE_UP),
        Step("taken", then=("take", "rotate"), waits=WHILE_DISK_IS_SENT, cancel=GIVE_UP),
        Step("rotate", cancel=refused("the backup is made")),
    )
    event = "compute_backup_instance"

    def kept(self, work: Work[Any]) -> None:
        work.advance("rotate")

    def rotate(self, batch: Sequence[Work[BackupState]]) -> None:
        """Late, it deletes only what newer backups have made even older."""
        for work in batch:
            for image in self._backups(work)[work.state.rotation :]:
                try:
                    self._tools.images.delete(image.id)
                except ImageRefusedError as error:
                    LOG.warning("backup %s of server %s stays: %s", image.id, work.server.uuid, error)
            super().kept(work)

    def _backups(self, work: Work[BackupState]) -> list[Image]:
        """Of the server's project, or of whoever made this one: others may say anything of their images."""
        images = self._tools.images
        owners = {work.server.project_id}
        with suppress(ImageNotFoundError):
            owners.add(images.find(work.state.image_id).owner)
        found = images.select(new_images.backup_mark(work.server.uuid, work.state.backup_type))
        return [image for image in found if image.owner in owners]

    def give_up(self, work: Work[Any], error: str) -> None:
        """A backup that is made stays, though older ones could not be removed."""
        super().give_up(work, error)
        if work.operation.step == "rotate":
            work.writes = []
