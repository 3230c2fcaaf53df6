"""The images of a conductor that has no credentials for Glance: it can neither look nor clean up."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from moorage.images.contract import Image, ImageRefusedError, NewImage

LOG = logging.getLogger(__name__)

_SENTENCE = "The conductors have no credentials for Glance."


class AbsentImages:
    """Takes it that records are there which others have made, and leaves them alone."""

    def find(self, image_id: str, token: str | None = None, project_id: str | None = None) -> Image:
        return Image(image_id, name="", status="queued")

    def create(self, new: NewImage, token: str | None = None) -> str:
        raise ImageRefusedError(_SENTENCE)

    def delete(self, image_id: str, token: str | None = None) -> None:
        raise ImageRefusedError(_SENTENCE)

    def select(
        self, properties: Mapping[str, str], token: str | None = None, project_id: str | None = None
    ) -> list[Image]:
        LOG.warning("no backup is rotated out: %s", _SENTENCE)
        return []
