"""Permits to make servers run: asked of a conductor for each task, right before, and valid for a while.

An agent that was frozen, restarted, cut off, or got a task late, does not know what became of the server
meanwhile: it may run elsewhere. A conductor knows whether this very attempt is still wanted of this host, and
has heard of the host by the question; so the permit ends before anybody can take the host for dead.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from prometheus_client import Counter

from moorage.bus.contract import StartQuestion, StartRequest, Task
from moorage.core.clock import uptime
from moorage.drivers.contract import DriverClosedError
from moorage.drivers.parts import StartPermit

LOG = logging.getLogger(__name__)

STARTS = Counter("moorage_agent_start_permits_total", "Permits to make a server run, by answer.", ["answer"])

MAY_START = frozenset(
    {
        *("spawn", "take_over", "live_migrate", "rebuild", "rescue", "unrescue"),
        *("start", "reboot", "unpause", "resume"),
    }
)
"""Tasks that can make a server run."""
UNLIMITED = StartPermit(float("-inf"), float("inf"))
"""For tasks of conductors that don't know of permits."""
_SHARE = 0.9
"""Of the time for which we count as alive: clocks of those who look at it differ a little."""
_PATIENCE = 60.0
_LOOKS = 0.2


class NotWantedError(Exception):
    """What a task asks for is no longer to be done here, or nobody says that it is."""


class PermitAnswer(msgspec.Struct, frozen=True):
    """What a conductor says: the payload of a `PERMIT`."""

    question: int
    seconds: float
    granted: list[str] = []
    refused: list[str] = []


@dataclass
class _Start:
    """A task that wants to make a server run, or may."""

    request: StartRequest
    asked: float
    """When it began to want that."""
    permit: StartPermit | None = None
    refused: bool = False


class StartPermits:
    def __init__(self, ask: Callable[[], None], clock: Callable[[], float] = uptime) -> None:
        """`ask` has `question` asked soon; what is not answered is asked again."""
        self._ask = ask
        self._clock = clock
        self._changed = threading.Condition()
        self._starts: dict[str, _Start] = {}
        """By server: one task at a time is at work on each."""
        self._number = 0
        self._questions: dict[int, tuple[float, list[StartRequest]]] = {}
        """When each was asked, and about what."""
        self._closed = False

    def of(self, server_uuid: str) -> StartPermit | None:
        """What a driver looks at; None for a server that no task makes run."""
        with self._changed:
            start = self._starts.get(server_uuid)
            return None if start is None else start.permit

    def obtain(self, task: Task, is_newest: Callable[[], bool]) -> None:
        """Wait for a fresh permit; NotWantedError if there is none for this task."""
        start = _Start(StartRequest(task.server_uuid, task.operation_id, task.attempt), self._clock())
        if not task.permit:
            start.permit = UNLIMITED
        with self._changed:
            self._starts[task.server_uuid] = start
        if start.permit is not None:
            return
        self._ask()
        deadline = start.asked + _PATIENCE
        with self._changed:
            while not (start.permit or start.refused or self._closed):
                if not is_newest():
                    raise NotWantedError("something newer has come up")
                if self._clock() >= deadline:
                    raise NotWantedError("no conductor has said that it is still wanted")
                self._changed.wait(_LOOKS)
            if self._closed:
                raise DriverClosedError
            if start.refused:
                raise NotWantedError("it is not wanted of this host any more")

    def end(self, server_uuid: str) -> None:
        """No task makes it run any more."""
        with self._changed:
            self._starts.pop(server_uuid, None)

    def question(self) -> StartQuestion | None:
        """About all that wait; None if nothing does."""
        with self._changed:
            waiting = [
                start.request for start in self._starts.values() if start.permit is None and not start.refused
            ]
            if not waiting:
                return None
            self._number += 1
            now = self._clock()
            self._questions = {
                number: asked for number, asked in self._questions.items() if asked[0] > now - _PATIENCE
            }
            self._questions[self._number] = (now, waiting)
            return StartQuestion(self._number, waiting)

    def learn(self, answer: PermitAnswer) -> None:
        """It counts from when it was asked; of a task that has ended meanwhile it says nothing."""
        with self._changed:
            asked, requests = self._questions.pop(answer.question, (0.0, []))
            for request in requests:
                start = self._starts.get(request.server_uuid)
                if start is None or start.request != request or start.permit is not None:
                    continue
                if asked < start.asked:  # an earlier permit of the same task has ended since
                    continue
                if request.server_uuid in answer.refused:
                    start.refused = True
                    STARTS.labels("refused").inc()
                elif request.server_uuid in answer.granted:
                    start.permit = StartPermit(asked, asked + _SHARE * answer.seconds)
                    STARTS.labels("granted").inc()
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
