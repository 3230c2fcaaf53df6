"""The order of tasks: those of one server follow each other, and a removal overtakes what came before it."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from moorage.agent.journal import in_order, is_removal
from moorage.bus.contract import Task


@dataclass(slots=True)
class _ServerQueue:
    """What is going on with one server."""

    newest: tuple[int, ...]
    work: Task | None = None
    """Handed to a thread; at most one that is not a removal."""
    begun: bool = False
    removals: int = 0
    waiting: Task | None = None

    @property
    def idle(self) -> bool:
        return self.work is None and self.removals == 0


class TaskQueues:
    def __init__(self) -> None:
        self._queues: dict[str, _ServerQueue] = {}
        self._changed = threading.Condition()

    def admit(self, task: Task) -> bool:
        """Whether the task may have a thread now; if not, it waits, and only the newest that waits counts."""
        with self._changed:
            queue = self._queues.setdefault(task.server_uuid, _ServerQueue(in_order(task)))
            queue.newest = max(queue.newest, in_order(task))
            if is_removal(task):
                queue.removals += 1
                if queue.waiting is not None and in_order(queue.waiting) < in_order(task):
                    queue.waiting = None
                return True
            if queue.idle:
                queue.work, queue.begun = task, False
                return True
            if queue.waiting is None or in_order(queue.waiting) < in_order(task):
                queue.waiting = task
            return False

    def waiting(self) -> int:
        """Tasks that were taken on and that no thread is at."""
        with self._changed:
            return sum(
                (queue.waiting is not None) + (queue.work is not None and not queue.begun)
                for queue in self._queues.values()
            )

    def begin(self, task: Task) -> bool:
        """A thread is about to do the task; False if a newer one has come since, so that it must not."""
        with self._changed:
            if is_removal(task):
                return True
            queue = self._queues[task.server_uuid]
            queue.begun = in_order(task) == queue.newest
            return queue.begun

    def is_newest(self, task: Task) -> bool:
        """Whether nothing newer was heard of the server since the task was taken on."""
        with self._changed:
            return in_order(task) == self._queues[task.server_uuid].newest

    def others_begun(self, task: Task) -> bool:
        """Whether some other task of the server is at work, so that a removal has to look again after it."""
        with self._changed:
            return self._queues[task.server_uuid].begun

    def wait_for_others(self, task: Task, timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._queues[task.server_uuid].begun, timeout)

    def leave(self, task: Task) -> Task | None:
        """The task is over; answers with the one that may have a thread now."""
        with self._changed:
            queue = self._queues[task.server_uuid]
            if is_removal(task):
                queue.removals -= 1
            else:
                queue.work, queue.begun = None, False
            self._changed.notify_all()
            if not queue.idle:
                return None
            successor, queue.waiting = queue.waiting, None
            if successor is None:
                del self._queues[task.server_uuid]
            else:
                queue.work = successor
            return successor

    def busy(self) -> set[str]:
        with self._changed:
            return set(self._queues)
