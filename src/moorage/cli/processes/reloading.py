"""What a process that serves no API takes up anew on SIGHUP."""

from __future__ import annotations

import logging
from collections.abc import Callable

from oslo_config import cfg

from moorage.core.config import ConfigError

LOG = logging.getLogger(__name__)


def take_up(read: Callable[[], cfg.ConfigOpts], *others: Callable[[cfg.ConfigOpts], None]) -> None:
    """The log's level, and what `others` take, who may refuse with ConfigError; the rest needs a restart.

    What makes no sense changes nothing, and is told once.
    """
    try:
        conf = read()
        for take in others:
            take(conf)
    except ConfigError as error:
        LOG.error("SIGHUP: the changed configuration is refused, and everything stays as it was: %s", error)
        return
    root, level = logging.getLogger(), logging.getLevelNamesMapping()[conf.log.level]
    root.setLevel(min(root.level, level))  # so that who turns it down still reads that
    LOG.info("SIGHUP: the log's level is %s; a restart takes up what is fixed at the start", conf.log.level)
    root.setLevel(level)
