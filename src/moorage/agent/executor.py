"""Does an agent's tasks: each once, the newest of a server last, and all of them in spite of restarts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec
from prometheus_client import Counter, Histogram

from moorage.agent import driver_tasks
from moorage.agent.driver_tasks import Facts
from moorage.agent.journal import Journal, is_removal
from moorage.agent.ports import Ports
from moorage.agent.reporter import Reporter
from moorage.agent.shared_threads import SharedThreads, destroyers
from moorage.agent.start_permits import MAY_START, NotWantedError, StartPermits
from moorage.agent.task_queues import TaskQueues
from moorage.bus.contract import (
    ABORT,
    BROKEN,
    DISCARD,
    HURRY,
    LAST,
    NO_ROOM,
    RELEASE_PORTS,
    UNCHANGED,
    UNDO_RESIZE,
    Result,
    Task,
)
from moorage.core import context, tracing
from moorage.core.context import WorkContext
from moorage.core.elastic_pool import PoolShare
from moorage.drivers.contract import (
    BrokenServerError,
    Driver,
    DriverClosedError,
    DriverError,
    NoRoomError,
    NotOursError,
    ServerSpec,
    StartNotPermittedError,
    UnchangedError,
)
from moorage.drivers.parts import LiveMovable, SharedStorage
from moorage.network import delegation
from moorage.network.delegation import Delegated

LOG = logging.getLogger(__name__)

TASKS = Counter("moorage_agent_tasks_total", "Tasks done, by kind and outcome.", ["kind", "outcome"])

TASK_SECONDS = Histogram(
    "moorage_agent_task_seconds",
    "Time that tasks took.",
    ["kind"],
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000),
)

_PATIENCE = 30
"""Seconds that a removal waits for another task of its server to end."""

_MOST_PERMITS = 10
"""So often a call may have needed longer than its permit lasts."""

_PLACING = frozenset({"spawn", "take_over", "expect"})
"""Tasks that bring a server here: what is wrong with this host need not be wrong with another."""


class Executor:
    """Tasks of one server follow each other; only `destroy` does not wait, since it ends what is at work.

    Destroys are counted by themselves, so that machines that hang can't keep others from being destroyed.
    """

    def __init__(
        self,
        driver: Driver,
        journal: Journal,
        send: Callable[[list[Result]], None],
        threads: int = 32,
        ports: Ports | None = None,
        shared: SharedThreads | None = None,
        permits: StartPermits | None = None,
        host: str = "",
    ) -> None:
        """`threads` is how many tasks are at work at once; destroys come on top of that. With `permits`,
        what makes servers run waits for one."""
        shared = shared or SharedThreads.of_process(threads)
        self._host = host
        self._driver = driver
        self._ports = ports or Ports(None)
        self._permits = permits
        self._journal = journal
        self._reporter = Reporter(journal, send, pool=shared.beats)
        self._workers = PoolShare(shared.tasks, threads)
        self._destroyers = PoolShare(shared.tasks, destroyers(threads))
        self._queues = TaskQueues()
        self._order = threading.Lock()
        self._closed = False
        self._stays: dict[str, str] = {}
        """Servers that should not be here and can't be removed, with the reason that was told."""
        self._methods: Mapping[str, Callable[[Task], Facts]] = {
            "spawn": self._spawn,
            "destroy": self._destroy,
            DISCARD: self._destroy,
            RELEASE_PORTS: self._release_ports,
        }

    def start(self) -> None:
        """Go on where an earlier life of this agent ended."""
        self._reporter.start()
        unfinished = self._journal.unfinished()
        if unfinished:
            LOG.info("taking up %d tasks that a restart interrupted", len(unfinished))
        for task in unfinished:
            if delegation.DELEGATED in task.payload:
                self._reporter.finished(task, _interrupted(task))
            elif task.secrets:
                self._drop(task, "what is secret of it was not written down, so it has to come again")
            else:
                self._schedule(task)

    def submit(self, tasks: Sequence[Task]) -> None:
        """Take tasks on. When this returns, they are written down."""
        with self._order:  # what is accepted first has to be scheduled first
            accepted = self._journal.accept(tasks)
            for task in accepted.fresh:
                if is_removal(task) or task.kind == UNDO_RESIZE:  # what it undoes must not go on meanwhile
                    self._driver.interrupt(task.server_uuid)
                self._schedule(task)
        if accepted.answers:
            self._reporter.repeat(accepted.answers)
        if accepted.stale:
            LOG.info("%d tasks are stale: newer ones for the same servers are known", accepted.stale)

    def signal(self, task: Task) -> None:
        """Tell the driver something about a call that is at work: it can't wait for its turn."""
        if not isinstance(self._driver, LiveMovable):
            return  # none is ever at work
        if task.kind == ABORT:
            self._driver.abort_live_migration(task.server_uuid)
        elif task.kind == HURRY:
            self._driver.hurry_live_migration(task.server_uuid)

    def aside(self, work: Callable[[], None]) -> None:
        """Have something done that is no task, by those who destroy servers."""
        self._destroyers.submit(work)

    def busy(self) -> set[str]:
        """Servers that something is being done to, whose state says nothing yet."""
        return self._queues.busy()

    def waiting(self) -> int:
        """How many tasks wait for a thread, or for another task of their server."""
        return self._queues.waiting()

    def stop(self) -> None:
        """Begin nothing more; the driver was closed, so what is at work ends soon and goes on next time."""
        with self._order:
            self._closed = True
        self._workers.close()
        self._destroyers.close()
        self._reporter.stop()

    def _schedule(self, task: Task) -> None:
        if not self._closed and self._queues.admit(task):
            self._hand_over(task)

    def _hand_over(self, task: Task) -> None:
        pool = self._destroyers if is_removal(task) else self._workers
        pool.submit(partial(self._work, task))  # if it is closed meanwhile, that is done after the next start

    def _work(self, task: Task) -> None:
        with context.working(self._context(task)):
            self._take_turn(task)

    def _context(self, task: Task) -> WorkContext:
        known = WorkContext(
            project_id=task.project_id,
            server=task.server_uuid,
            host=self._host,
            operation=f"{task.kind}-{task.operation_id}-{task.attempt}",
        )
        return known.of_request(task.request_ids)

    def _take_turn(self, task: Task) -> None:
        try:
            if self._queues.begin(task) and not self._is_void(task):
                began = time.monotonic()
                result = self._remove(task) if is_removal(task) else self._do(task)
                self._tell(task, result, time.monotonic() - began)
                self._reporter.finished(task, result)
        except DriverClosedError:
            LOG.info("%s of server %s goes on after the next start", task.kind, task.server_uuid)
        except NotOursError as error:
            # Whoever owns the node is asked, too, and has the word. We are asked again if it is us after all.
            self._drop(task, str(error))
        except NotWantedError as error:
            self._drop(task, str(error))
        finally:
            successor = self._queues.leave(task)
        if successor is not None:
            self._hand_over(successor)

    def _is_void(self, task: Task) -> bool:
        """It waited while the database was restored, which may not know of it."""
        if task.era == self._journal.era:
            return False
        LOG.warning(
            "%s of server %s is not begun: the database was restored since", task.kind, task.server_uuid
        )
        TASKS.labels(task.kind, "dropped").inc()
        return True

    def _tell(self, task: Task, result: Result, seconds: float) -> None:
        TASKS.labels(task.kind, "ok" if result.ok else "failed").inc()
        TASK_SECONDS.labels(task.kind).observe(seconds)
        tracing.record(f"agent: {task.kind}", context.current(), seconds, None if result.ok else result.error)
        if result.ok:
            self._stays.pop(task.server_uuid, None)
            LOG.info("%s took %.3f s", task.kind, seconds)
        elif task.kind == DISCARD:
            self._tell_that_it_stays(task.server_uuid, result.error)
        else:
            LOG.warning("%s failed after %.3f s: %s", task.kind, seconds, result.error)

    def _tell_that_it_stays(self, server_uuid: str, reason: str) -> None:
        """Nobody waits for the result of a discard, and it comes again at every full report: so the reason is
        told here, and once."""
        if self._stays.get(server_uuid) != reason:
            self._stays[server_uuid] = reason
            LOG.warning("server %s should not be here, and can't be removed: %s", server_uuid, reason)

    def _drop(self, task: Task, reason: str) -> None:
        """If it is wanted after all, it comes again."""
        LOG.warning("%s of server %s is dropped: %s", task.kind, task.server_uuid, reason)
        TASKS.labels(task.kind, "dropped").inc()
        self._journal.drop(task)

    def _do(self, task: Task) -> Result:
        """What may make a server run has a permit before it begins; if that ends too early, it gets another
        one, and goes on: every call can come twice."""
        if self._permits is None or task.kind not in MAY_START:
            return self._perform(task)
        try:
            for _ in range(_MOST_PERMITS):
                self._permits.obtain(task, partial(self._queues.is_newest, task))
                try:
                    return self._perform(task)
                except StartNotPermittedError:
                    LOG.info("%s of server %s takes longer than permitted", task.kind, task.server_uuid)
        finally:
            self._permits.end(task.server_uuid)
        error = "it could not be started within the time that it was permitted to"
        return _result(task, ok=False, error=error, retry_elsewhere=task.kind in _PLACING)

    def _remove(self, task: Task) -> Result:
        """Remove the server, and look again once whatever was at work for it has ended.

        What was about to call the driver when we did is cut short only by another call.
        """
        result = self._perform(task)
        if not self._queues.others_begun(task):
            return result
        for _ in range(_PATIENCE):
            ended = self._queues.wait_for_others(task, 1.0)
            result = self._perform(task)
            if ended:
                return result
        return _result(task, ok=False, error="another task of the server does not end")

    def _perform(self, task: Task) -> Result:
        try:
            method = self._methods.get(task.kind)
            facts = driver_tasks.perform(self._driver, task) if method is None else method(task)
            return _result(task, ok=True, facts=facts)
        except (DriverClosedError, NotOursError):
            raise
        except NoRoomError as error:
            return _result(task, ok=False, error=str(error), retry_elsewhere=True, facts={NO_ROOM: True})
        except DriverError as error:
            retry, facts = error.retry_elsewhere, _left_behind(error)
            return _result(task, ok=False, error=str(error), retry_elsewhere=retry, facts=facts)
        except msgspec.ValidationError as error:
            return _result(task, ok=False, error=f"the task makes no sense: {error}")
        except Exception as error:
            LOG.exception("%s of server %s failed unexpectedly", task.kind, task.server_uuid)
            text = f"{type(error).__name__}: {error}"
            return _result(task, ok=False, error=text, retry_elsewhere=task.kind in _PLACING)

    def _spawn(self, task: Task) -> Facts:
        spec = msgspec.convert(task.payload, ServerSpec)
        spec = msgspec.structs.replace(spec, work=f"{task.operation_id}-{task.attempt}")
        delegated = delegation.delegated_in(task.payload)
        if delegated is None:
            return driver_tasks.made(self._driver, task, self._driver.spawn(spec))
        return self._spawn_with_ports(task, spec, delegated)

    def _spawn_with_ports(self, task: Task, spec: ServerSpec, delegated: Delegated) -> Facts:
        """As agents did before conductors made ports."""

        def wanted() -> bool:
            return not self._closed and self._queues.is_newest(task)

        ports = self._ports.get_ready(delegated, wanted)
        if not wanted():  # a destroy that came meanwhile has found nothing to interrupt
            raise DriverError("the agent ends, or something newer has come up", retry_elsewhere=True)
        told = msgspec.to_builtins(ports)
        try:
            power = self._driver.spawn(msgspec.structs.replace(spec, network=told))
            if delegated.await_plug:
                self._ports.wait_until_up(task.server_uuid, ports, wanted)
        except DriverClosedError:
            raise
        except Exception:
            self._ports.throw_away(delegated, wanted)
            raise
        return {**driver_tasks.made(self._driver, task, power), delegation.MADE: told}

    def _destroy(self, task: Task) -> Facts:
        if task.payload.get(LAST) and isinstance(self._driver, SharedStorage):
            self._driver.forsake(task.server_uuid)
        self._driver.destroy(task.server_uuid, task.node_uuid)
        if self._ports.have_network and delegation.HOLDING in task.payload:
            self._release_ports(task)
        return {}

    def _release_ports(self, task: Task) -> Facts:
        holding = delegation.server_ports_in(task.payload)
        if holding is not None:
            self._ports.release(holding)
        return {}


def _left_behind(error: DriverError) -> Facts:
    """What the driver is sure of about a server for which something has failed."""
    if isinstance(error, UnchangedError):
        return {UNCHANGED: True}
    return {BROKEN: True} if isinstance(error, BrokenServerError) else {}


def _interrupted(task: Task) -> Result:
    """Its ports may be another host's by now, so that a restart is no reason to touch them."""
    return _result(
        task, ok=False, error="the agent was restarted in the middle of a spawn", retry_elsewhere=True
    )


def _result(
    task: Task, *, ok: bool, error: str = "", retry_elsewhere: bool = False, facts: Facts | None = None
) -> Result:
    return Result(
        operation_id=task.operation_id,
        server_uuid=task.server_uuid,
        attempt=task.attempt,
        era=task.era,
        ok=ok,
        error=error,
        retry_elsewhere=retry_elsewhere,
        facts=dict(facts or {}),
        ticket=task.ticket,
    )
