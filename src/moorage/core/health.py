"""What is wrong with a process, if anything: asked by probes, often, so it is looked at seldom.

A look may hang, as a machine that is gone says nothing. So each has a thread of its own, at most one, and
whoever asks gets an answer in time: that of the last look, or that it has not ended.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

LOG = logging.getLogger(__name__)

_FRESH_SECONDS = 5.0
_MOST_SECONDS = 2.0
_LONGEST_TROUBLE = 300


class Fine(NamedTuple):
    """Nothing is wrong, but there is something to say."""

    remark: str


class HealthCheck(NamedTuple):
    name: str
    look: Callable[[], str | Fine | None]
    """What is wrong, in a sentence; None if nothing is. It may raise."""
    vital: bool = False
    """Without it the process is of no use at all: a supervisor may restart it."""


class HealthFinding(NamedTuple):
    name: str
    trouble: str | None
    vital: bool
    remark: str = ""
    """Of what is well."""


class Health:
    def __init__(
        self,
        checks: Sequence[HealthCheck],
        fresh_seconds: float = _FRESH_SECONDS,
        most_seconds: float = _MOST_SECONDS,
    ) -> None:
        self._looks = [_Look(check, fresh_seconds) for check in checks]
        self._most_seconds = most_seconds

    def findings(self, *, only_vital: bool = False) -> list[HealthFinding]:
        """In no more than a moment, however many looks hang."""
        looks = [look for look in self._looks if look.check.vital or not only_vital]
        for look in looks:
            look.renew()
        deadline = time.monotonic() + self._most_seconds
        return [look.finding(deadline) for look in looks]


class _Look:
    def __init__(self, check: HealthCheck, fresh_seconds: float) -> None:
        self.check = check
        self._fresh_seconds = fresh_seconds
        self._changed = threading.Condition()
        self._begun_at: float | None = None
        """When the look began that has not ended."""
        self._seen_at: float | None = None
        self._trouble: str | None = None
        self._remark = ""

    def renew(self) -> None:
        """Look again, unless somebody does, or has just done so."""
        with self._changed:
            if self._begun_at is not None or self._is_fresh():
                return
            self._begun_at = time.monotonic()
        threading.Thread(target=self._run, name=f"health-{self.check.name}", daemon=True).start()

    def finding(self, deadline: float) -> HealthFinding:
        with self._changed:
            self._changed.wait_for(lambda: self._begun_at is None, max(0.0, deadline - time.monotonic()))
            trouble = self._trouble
            if self._begun_at is not None:
                trouble = f"no answer for {time.monotonic() - self._begun_at:.0f} s"
            return HealthFinding(self.check.name, trouble, self.check.vital, self._remark)

    def _is_fresh(self) -> bool:
        return self._seen_at is not None and time.monotonic() - self._seen_at < self._fresh_seconds

    def _run(self) -> None:
        try:
            seen = self.check.look()
        except Exception as error:
            seen = f"{type(error).__name__}: {error}"
        remark = seen.remark if isinstance(seen, Fine) else ""
        trouble = " ".join(seen.split())[:_LONGEST_TROUBLE] if isinstance(seen, str) else None
        if trouble is not None and self._trouble is None:
            LOG.warning("%s: %s", self.check.name, trouble)
        elif trouble is None and self._trouble is not None:
            LOG.info("%s: well again", self.check.name)
        elif remark and remark != self._remark and self._seen_at is not None:
            LOG.info("%s: %s", self.check.name, remark)  # it came while we ran
        with self._changed:
            self._trouble, self._remark = trouble, remark
            self._seen_at, self._begun_at = time.monotonic(), None
            self._changed.notify_all()


class Pulse:
    """When something that has to happen again and again last went well."""

    def __init__(self, missing: str, longest: float) -> None:
        """`missing` is what to say if it does not; `longest`, seconds in between that are no reason to."""
        self._missing = missing
        self._longest = longest
        self._at = time.monotonic()

    def beat(self) -> None:
        self._at = time.monotonic()

    def trouble(self) -> str | None:
        silence = time.monotonic() - self._at
        return None if silence <= self._longest else f"{self._missing} for {silence:.0f} s"
