"""The order of tasks: those of one server follow each other, and a removal overtakes what came before it."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from moorage.agent.journal import Fence, fence, is_removal
from moorage.bus.contract import Task


@dataclass(slots=True)
class _Lane:
    """What is going on with one server."""

    newest: Fence
    work: Task | None = None
    """Handed to a thread; at most one that is not a removal."""
    begun: bool = False
    removals: int = 0
    waiting: Task | None = None

    @property
    def idle(self) -> bool:
        return self.work is None and self.removals == 0


class Lanes:
    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._changed = threading.Condition()

    def admit(self, task: Task) -> bool:
        """Whether the task may have a thread now; if not, it waits, and only the newest that waits counts."""
        with self._changed:
            lane = self._lanes.setdefault(task.server_uuid, _Lane(fence(task)))
            lane.newest = max(lane.newest, fence(task))
            if is_removal(task):
                lane.removals += 1
                if lane.waiting is not None and fence(lane.waiting) < fence(task):
                    lane.waiting = None
                return True
            if lane.idle:
                lane.work, lane.begun = task, False
                return True
            if lane.waiting is None or fence(lane.waiting) < fence(task):
                lane.waiting = task
            return False

    def begin(self, task: Task) -> bool:
        """A thread is about to do the task; False if a newer one has come since, so that it must not."""
        with self._changed:
            if is_removal(task):
                return True
            lane = self._lanes[task.server_uuid]
            lane.begun = fence(task) == lane.newest
            return lane.begun

    def is_newest(self, task: Task) -> bool:
        """Whether nothing newer was heard of the server since the task was taken on."""
        with self._changed:
            return fence(task) == self._lanes[task.server_uuid].newest

    def others_begun(self, task: Task) -> bool:
        """Whether some other task of the server is at work, so that a removal has to look again after it."""
        with self._changed:
            return self._lanes[task.server_uuid].begun

    def wait_for_others(self, task: Task, timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._lanes[task.server_uuid].begun, timeout)

    def leave(self, task: Task) -> Task | None:
        """The task is over; answers with the one that may have a thread now."""
        with self._changed:
            lane = self._lanes[task.server_uuid]
            if is_removal(task):
                lane.removals -= 1
            else:
                lane.work, lane.begun = None, False
            self._changed.notify_all()
            if not lane.idle:
                return None
            successor, lane.waiting = lane.waiting, None
            if successor is None:
                del self._lanes[task.server_uuid]
            else:
                lane.work = successor
            return successor

    def busy(self) -> set[str]:
        with self._changed:
            return set(self._lanes)
