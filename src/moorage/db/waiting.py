"""Waiting for a database that is away while a process starts: after a power cut machines come back in any
order, and one that has answered once may be away again a moment later."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

LOG = logging.getLogger(__name__)

T = TypeVar("T")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0


def wait_for(work: Callable[[], T], seconds: float) -> T:
    """What `work` comes to; it may be tried several times."""
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE
    while True:
        try:
            return work()
        except sa.exc.OperationalError as error:
            if time.monotonic() + pause > deadline:
                raise
            LOG.warning("the database can't be reached, next try in %.1f s: %s", pause, error.orig)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
