"""What the bus refuses: counted, and told in the log, but not so often that it fills up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from enum import StrEnum

from prometheus_client import Counter

from moorage.core.pauses import Pauses

LOG = logging.getLogger(__name__)
REFUSED = Counter(
    "moorage_bus_refused_total", "Messages, or parts of them, that were not believed.", ["kind", "reason"]
)
UNSEALED = Counter(
    "moorage_bus_unsealed_total", "Messages that were taken without a seal, by [bus] signing.", ["kind"]
)


class RefusalReason(StrEnum):
    UNSEALED = "unsealed"
    """It has no seal, and needs one."""
    FORGED = "forged"
    """Its seal is not by a key that we know, or it was altered."""
    OTHER_HOST = "other_host"
    """Its sender speaks of itself as another host, or it is for another one."""
    NOT_ASKED = "not_asked"
    """The result of a task that this host was never given."""
    REPLAYED = "replayed"
    """It was here before, or is too old."""
    NOT_OWN = "not_own"
    """It is about a node or a machine that is another host's."""


_UNPROVEN = (RefusalReason.UNSEALED, RefusalReason.FORGED)
"""Here the sender may have called itself anything."""


class RefusedError(Exception):
    """A message is not believed."""

    def __init__(self, reason: RefusalReason, host: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason
        self.host = host


class Refusals:
    """One line in ten seconds for each reason, and for each host that certainly said it; the next one says
    how many there were."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._pauses = Pauses(clock)

    def refuse(self, kind: str, error: RefusedError) -> None:
        REFUSED.labels(kind, error.reason.value).inc()
        host = "" if error.reason in _UNPROVEN else error.host
        silent = self._pauses.passes((kind, error.reason, host))
        if silent is not None:
            more = f" ({silent} more since the last line)" if silent else ""
            LOG.error("refused (%s): %s of host %r: %s%s", error.reason, kind, error.host, error, more)


REFUSALS = Refusals()
"""Of this process: its log is one, too."""
