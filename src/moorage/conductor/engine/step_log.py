"""What operations leave in the log and in the metrics: a line for each step, with the time that it took."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from prometheus_client import Counter, Histogram

from moorage.conductor.engine.work import Work
from moorage.core import tracing
from moorage.core.clock import utcnow

LOG = logging.getLogger(__name__)

ENDED = Counter("moorage_conductor_operations_total", "Operations ended.", ["kind", "outcome"])
_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000)
"""Some steps wait for a machine to boot."""
STEP_SECONDS = Histogram(
    "moorage_conductor_step_seconds",
    "From an operation's coming to a step until it is done with it, waiting and retries included.",
    ["kind", "step"],
    buckets=_BUCKETS,
)
OPERATION_SECONDS = Histogram(
    "moorage_conductor_operation_seconds",
    "From the request for an operation until its end.",
    ["kind", "outcome"],
    buckets=_BUCKETS,
)


class StepLog:
    def tell(self, work: Work[Any]) -> None:
        """After the checkpoint, so that each step is told once, however often it was tried."""
        operation, now = work.operation, utcnow()
        if work.outcome is None and operation.step == work.last_step:
            return
        seconds = _between(operation.step_since or operation.created_at, now)
        STEP_SECONDS.labels(operation.kind, work.last_step).observe(seconds)
        tracing.record(f"{operation.kind}: {work.last_step}", work.context, seconds, work.error)
        if work.outcome is not None:
            self._tell_end(work, work.outcome, _between(operation.created_at, now))
        elif LOG.isEnabledFor(logging.INFO):
            line = "%s: %s took %.3f s, then comes %s"
            LOG.info(line, operation.kind, work.last_step, seconds, operation.step, extra=_about(work))

    def _tell_end(self, work: Work[Any], outcome: str, seconds: float) -> None:
        """A failure leaves its reason here, and nowhere else."""
        kind = work.operation.kind
        ENDED.labels(kind, outcome).inc()
        OPERATION_SECONDS.labels(kind, outcome).observe(seconds)
        if work.error is None:
            LOG.info("%s is %s after %.3f s", kind, outcome, seconds, extra=_about(work))
        else:
            line = "%s failed at %s after %.3f s: %s"
            LOG.warning(line, kind, work.last_step, seconds, work.error, extra=_about(work))


def _between(since: datetime, now: datetime) -> float:
    """Clocks of several machines: not less than nothing."""
    return max(0.0, (now - since).total_seconds())


def _about(work: Work[Any]) -> dict[str, Any]:
    return {"work": work.context}
