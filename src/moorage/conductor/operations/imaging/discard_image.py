"""Discard an image that a server leaves behind: of a snapshot that was cut short, or of a shelved server.

It concerns no host, and says nothing about the server, which may be gone.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from moorage.conductor.engine.work import Work
from moorage.conductor.operations.kind import OperationKind
from moorage.images.contract import ImageNotFoundError, ImageRefusedError
from moorage.ledger.declared import Step, refused

LOG = logging.getLogger(__name__)
_ACTIVE = "active"
_LATER_SECONDS = 600.0


class DiscardImageState(msgspec.Struct, omit_defaults=True):
    image_id: str
    even_whole: bool = False
    """Also if it has its data: nobody but the server has a use for it."""


class DiscardImage(OperationKind):
    name = "discard_image"
    state = DiscardImageState
    steps = (Step("begin", cancel=refused("it removes an image that nobody needs any more")),)

    def begin(self, batch: Sequence[Work[DiscardImageState]]) -> None:
        """Late, it finds nothing: the id is never used again."""
        for work in batch:
            image_id = work.state.image_id
            try:
                if work.state.even_whole or self._tools.images.find(image_id).status != _ACTIVE:
                    self._tools.images.delete(image_id)
            except ImageNotFoundError:
                pass
            except ImageRefusedError as error:
                LOG.warning("image %s of server %s stays: %s", image_id, work.server.uuid, error)
            work.finish()

    def give_up(self, work: Work[DiscardImageState], error: str) -> None:
        """Nobody waits for it, so it is tried until the Image service is back."""
        LOG.warning("image %s of server %s stays for now: %s", work.state.image_id, work.server.uuid, error)
        work.wait("begin", _LATER_SECONDS)
