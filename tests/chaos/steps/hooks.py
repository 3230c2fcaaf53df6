"""Where the points are: put around the product's own methods, in processes that tests start.

A conductor comes to them before and after each step, after each call to a neighbour that changes something
there, and once what a step has reached is kept; in an audit, before a repair, before it is committed, once
it is done, and once that is written down. An agent: once it has written a task down, done it, written down
that, and said so. An API, and a Placement: before what a request wants is committed, and before the answer.
"""

from __future__ import annotations

import concurrent.futures
import contextvars
import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import requests

from moorage.agent.executor import Executor
from moorage.agent.journal import Journal
from moorage.bus.local import LocalConductorSide
from moorage.bus.messaging import MessagingConductorSide
from moorage.conductor.auditing.auditor import Auditor
from moorage.conductor.engine.runner import Runner
from moorage.conductor.operations.kind import OperationKind
from moorage.conductor.operations.moves import live_migrate
from moorage.drivers.contract import PAUSED, Inventory, ServerSpec
from moorage.drivers.fake import driver as fake_driver
from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from moorage.http.auth import Wsgi
from moorage.http.server import HttpServer
from moorage.images.catalogue import Catalogue
from moorage.ledger import queue
from moorage.placement.client.local import LocalPlacement
from tests.chaos.steps.points import Points

STANDS_STILL = "stands_still"
"""In a server's metadata: it is paused until its ports are up, as with drivers whose guests are quick."""
BANDWIDTH = {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}
"""What a port may need; nodes have ten times that."""
_CHANGES = ("POST", "PUT", "PATCH", "DELETE")
_BY_THE_WAY = ("/image", "/moorage/v1/providers")
"""What is sent to where images are, and what hosts report when it is time to."""
_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}")
_HOST = re.compile(r"\bfake-\d+")


@dataclass
class _Step:
    """What a thread is at; threads that work for it know it, too."""

    name: str
    calls: int = 0


_STEP: contextvars.ContextVar[_Step | None] = contextvars.ContextVar("step", default=None)
_REQUEST: contextvars.ContextVar[str | None] = contextvars.ContextVar("request", default=None)


def install(points: Points, part: str, buttons: Path) -> None:
    """`part` says what this process is, for the points of requests."""
    _watch_steps(points)
    _watch_calls(points)
    _watch_tasks(points)
    _watch_requests(points, part)
    _watch_repairs(points)
    _prepare_fake_driver(buttons)
    live_migrate._LOOK_SECONDS = 0.1


def _around(owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(wrap(original)))


def _watch_steps(points: Points) -> None:
    def run(original: Callable[..., None]) -> Callable[..., None]:
        def running(self: OperationKind, step: str, batch: Any) -> None:
            name = f"{self.name}/{step}"
            _STEP.set(_Step(name))
            points.reach(f"{name}: begins")
            original(self, step, batch)
            points.reach(f"{name}: is done")

        return running

    def write_down(original: Callable[..., Any]) -> Callable[..., Any]:
        def keeping(self: Runner, *given: Any) -> Any:
            mine = original(self, *given)
            step = _STEP.get()
            if step is not None:
                points.reach(f"{step.name}: is kept")
            _STEP.set(None)
            return mine

        return keeping

    _around(OperationKind, "run", run)
    _around(Runner, "_write_down", write_down)


def _watch_calls(points: Points) -> None:
    def called(what: Callable[..., str | None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def calling(*given: Any, **options: Any) -> Any:
                answer = original(*given, **options)
                step, name = _STEP.get(), what(*given)
                if step is not None and name is not None:
                    step.calls += 1
                    points.reach(f"{step.name}: call {step.calls}, {name}")
                return answer

            return calling

        return wrap

    def sent(_session: Any, request: requests.PreparedRequest, *_: Any) -> str | None:
        changes = request.method in _CHANGES
        return f"{request.method} {_shape(request.path_url)}" if changes else None

    _around(requests.Session, "send", called(sent))
    for side in (LocalConductorSide, MessagingConductorSide):
        _around(side, "cast", called(lambda _side, _host, tasks: f"ask for {tasks[0].kind}"))
    for change in ("claim", "claim_together", "release"):
        _around(LocalPlacement, change, called(lambda *_, change=change: f"placement {change}"))
    for change in ("create", "delete"):
        _around(Catalogue, change, called(lambda *_, change=change: f"image {change}"))
    _around(concurrent.futures.ThreadPoolExecutor, "submit", _in_context)


def _in_context(original: Callable[..., Any]) -> Callable[..., Any]:
    def submit(self: Any, work: Callable[..., Any], /, *given: Any, **options: Any) -> Any:
        return original(self, contextvars.copy_context().run, work, *given, **options)

    return submit


def _watch_tasks(points: Points) -> None:
    kinds: dict[tuple[str, int, int], str] = {}

    def accept(original: Callable[..., Any]) -> Callable[..., Any]:
        def accepting(self: Journal, tasks: Any) -> Any:
            accepted = original(self, tasks)
            for task in accepted.fresh:
                points.reach(f"agent, {task.kind}: is accepted")
            return accepted

        return accepting

    def perform(original: Callable[..., Any]) -> Callable[..., Any]:
        def performing(self: Executor, task: Any) -> Any:
            result = original(self, task)
            points.reach(f"agent, {task.kind}: is done")
            return result

        return performing

    def finish(original: Callable[..., Any]) -> Callable[..., Any]:
        def finishing(self: Journal, results: Iterable[Any]) -> Any:
            ended = list(results)
            current = original(self, ended)
            for task, _ in ended:
                kinds[task.server_uuid, task.operation_id, task.attempt] = task.kind
                points.reach(f"agent, {task.kind}: is written down")
            return current

        return finishing

    def reported(original: Callable[..., Any]) -> Callable[..., Any]:
        def reporting(self: Journal, results: Iterable[Any]) -> Any:
            said = list(results)
            for result in said:
                kind = kinds.get((result.server_uuid, result.operation_id, result.attempt))
                if kind is not None:
                    points.reach(f"agent, {kind}: is said")
            return original(self, said)

        return reporting

    _around(Journal, "accept", accept)
    _around(Executor, "_perform", perform)
    _around(Journal, "finish", finish)
    _around(Journal, "reported", reported)


def _watch_requests(points: Points, part: str) -> None:
    def watched(application: Wsgi) -> Wsgi:
        def answer(environ: Any, start_response: Any) -> Any:
            method, path = environ["REQUEST_METHOD"], _shape(environ["PATH_INFO"])
            if method not in _CHANGES or path.startswith(_BY_THE_WAY):
                return application(environ, start_response)
            request = f"{part}, {method} {path}"
            _REQUEST.set(request)
            if part == "placement":
                points.reach(f"{request}: has come")
            answered = application(environ, start_response)
            points.reach(f"{request}: is done")
            _REQUEST.set(None)
            return answered

        return answer

    def serve(original: Callable[..., None]) -> Callable[..., None]:
        def serving(self: HttpServer, listen: str, port: int, application: Wsgi, **options: Any) -> None:
            original(self, listen, port, watched(application), **options)

        return serving

    def enqueue(original: Callable[..., Any]) -> Callable[..., Any]:
        def writing(*given: Any, **options: Any) -> Any:
            written = original(*given, **options)
            request = _REQUEST.get()
            if request is not None:
                points.reach(f"{request}: is not committed yet")
            return written

        return writing

    _around(HttpServer, "__init__", serve)
    _around(queue, "enqueue", enqueue)
    _around(queue, "enqueue_first", enqueue)


def _watch_repairs(points: Points) -> None:
    def act(original: Callable[..., Any]) -> Callable[..., Any]:
        def acting(self: Auditor, check: Any, found: Any) -> Any:
            request = f"audit, {check.name}"
            points.reach(f"{request}: begins")
            if found.operation:
                _REQUEST.set(request)
            else:
                _STEP.set(_Step(request))
            error = original(self, check, found)
            points.reach(f"{request}: is done")
            _REQUEST.set(None)
            _STEP.set(None)
            return error

        return acting

    def repair(original: Callable[..., None]) -> Callable[..., None]:
        def repairing(self: Auditor, finding: Any) -> None:
            original(self, finding)
            points.reach(f"audit, {finding.check_name}: is told")

        return repairing

    _around(Auditor, "_act", act)
    _around(Auditor, "_repair", repair)


def _shape(path: str) -> str:
    """Without what differs from run to run."""
    return _HOST.sub("HOST", _UUID.sub("ID", path.split("?")[0]))


def _prepare_fake_driver(buttons: Path) -> None:
    """Its guests may stand still at first, somebody may press their machines' buttons, and their nodes have
    bandwidth."""
    inventories = fake_driver._inventories

    def with_bandwidth(settings: FakeSettings) -> dict[str, Inventory]:
        return inventories(settings) | {name: Inventory(total=10 * n) for name, n in BANDWIDTH.items()}

    def make(original: Callable[..., int]) -> Callable[..., int]:
        def making(self: FakeDriver, step: str, spec: ServerSpec, disk: str, power: int | None = None) -> int:
            waits = step == "spawn" and STANDS_STILL in spec.metadata and spec.power_on
            return original(self, step, spec, disk, PAUSED if waits else power)

        return making

    def power(original: Callable[..., int]) -> Callable[..., int]:
        def looking(self: FakeDriver, server_uuid: str, node_uuid: str) -> int:
            pressed = buttons / server_uuid
            if pressed.exists():
                server = self._present(server_uuid)
                self._servers.put(msgspec.structs.replace(server, power=int(pressed.read_text())))
            return original(self, server_uuid, node_uuid)

        return looking

    setattr(fake_driver, "_inventories", with_bandwidth)  # noqa: B010
    _around(FakeDriver, "_make", make)
    _around(FakeDriver, "power", power)
