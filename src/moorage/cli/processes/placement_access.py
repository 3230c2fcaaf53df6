"""Before a service that needs Placement starts: is it configured, and does it let us in?"""

from __future__ import annotations

import logging

from oslo_config import cfg

from moorage.cli.errors import CommandError
from moorage.placement.client.probe import PlacementHealth, probe

LOG = logging.getLogger(__name__)


def require_placement(conf: cfg.ConfigOpts) -> None:
    """Refuse to start with what only an operator can mend, unless `[placement] required` is false."""
    found = probe(conf)
    if found.health is PlacementHealth.READY:
        return
    if conf.placement.required and found.health is not PlacementHealth.UNREACHABLE:
        raise CommandError(
            f"{found.sentence}. Mend [placement_client], or set [placement] required = false to start anyway"
        )
    LOG.warning("starting without Placement: %s", found.sentence)
