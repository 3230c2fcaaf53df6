"""What a process that serves no API takes up anew on SIGHUP."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from moorage.cli import settings
from moorage.core.config import ConfigError

LOG = logging.getLogger(__name__)


def log_level(config_file: Sequence[Path] | None) -> None:
    """As the files have it now; all else needs a restart, and what makes no sense changes nothing."""
    try:
        level = settings.read(config_file).log.level
    except ConfigError as error:
        LOG.error("SIGHUP: the changed configuration is refused, and everything stays as it was: %s", error)
        return
    logging.getLogger().setLevel(level)
    LOG.info("SIGHUP: the log's level is %s; other changes are taken up by a restart", level)
