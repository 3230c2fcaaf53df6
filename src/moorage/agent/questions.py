"""What an agent is asked, answered by its driver at once: questions wait for no task, and change nothing.

But for a guest's password: what is asked here is nowhere written down, as a task would be.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from prometheus_client import Counter

from moorage.bus.contract import Answer, HeldMachine, Question, QuestionKind, Refusal
from moorage.drivers.contract import RUNNING, Driver, DriverClosedError, DriverError, NotOursError
from moorage.drivers.image_caching import ImageCaching
from moorage.drivers.parts import (
    ConsoleLogging,
    ConsoleType,
    Diagnosable,
    MissingPartError,
    PasswordChanging,
    Remembering,
    RemoteConsoles,
    TopologyTelling,
    require,
)
from moorage.drivers.shared_nodes import SharedNodes

LOG = logging.getLogger(__name__)
QUESTIONS = Counter("moorage_agent_questions_total", "Questions, by kind and outcome.", ["kind", "outcome"])

_MOST_AT_ONCE = 6
"""Fewer than the threads of a bus: machines that hang keep nobody from being told that we are busy."""


class Questions:
    def __init__(self, driver: Driver, most_at_once: int = _MOST_AT_ONCE) -> None:
        self._driver = driver
        self._free = threading.Semaphore(most_at_once)

    def answer(self, question: Question) -> Answer:
        """In the caller's thread, which may have to wait for a machine."""
        if not self._free.acquire(blocking=False):
            return _told(question, Answer(refusal=Refusal.BUSY, error="too many questions are at work"))
        try:
            return _told(question, self._find_out(question))
        finally:
            self._free.release()

    def _find_out(self, question: Question) -> Answer:
        work = _KINDS.get(question.kind)
        if work is None:
            return Answer(
                refusal=Refusal.UNSUPPORTED, error=f"this agent knows no question {question.kind!r}"
            )
        try:
            return work(self._driver, question)
        except MissingPartError as error:
            return Answer(refusal=Refusal.UNSUPPORTED, error=str(error))
        except (NotOursError, DriverClosedError) as error:
            return Answer(refusal=Refusal.ELSEWHERE, error=str(error))
        except DriverError as error:
            return Answer(refusal=Refusal.FAILED, error=str(error))
        except Exception as error:
            LOG.exception("%s of server %s could not be found out", question.kind, question.server_uuid)
            return Answer(refusal=Refusal.FAILED, error=f"{type(error).__name__}: {error}")


def _told(question: Question, answer: Answer) -> Answer:
    kind = question.kind if question.kind in _KINDS else "unknown"
    QUESTIONS.labels(kind, answer.refusal or "answered").inc()
    return answer


def _console_log(driver: Driver, question: Question) -> Answer:
    lines = msgspec.convert(question.payload.get("lines"), int | None)
    output = require(driver, ConsoleLogging).console_log(question.server_uuid, question.node_uuid, lines)
    return Answer({"output": output})


def _diagnostics(driver: Driver, question: Question) -> Answer:
    diagnosable = require(driver, Diagnosable)
    power = driver.power(question.server_uuid, question.node_uuid)
    if power != RUNNING:
        return Answer({"power_state": power}, Refusal.NOT_RUNNING, "the server does not run")
    return Answer(diagnosable.diagnostics(question.server_uuid, question.node_uuid))


def _console(driver: Driver, question: Question) -> Answer:
    wanted = ConsoleType(question.payload["type"])
    address = require(driver, RemoteConsoles).console(question.server_uuid, question.node_uuid, wanted)
    return Answer(msgspec.to_builtins(address))


def _topology(driver: Driver, question: Question) -> Answer:
    found = require(driver, TopologyTelling).topology(question.server_uuid, question.node_uuid)
    return Answer(msgspec.to_builtins(found, str_keys=True))


def _holdings(driver: Driver, question: Question) -> Answer:
    only = set(question.payload.get("only", ()))
    servers = {uuid: power for uuid, power in driver.servers().items() if not only or uuid in only}
    told: dict[str, Any] = {"servers": servers, "machines": []}
    if isinstance(driver, SharedNodes):
        machines = [HeldMachine(*one) for one in sorted(driver.held()) if not only or one.server_uuid in only]
        return Answer({**told, "machines": msgspec.to_builtins(machines)})
    return Answer({**told, "nodes": [node.uuid for node in driver.nodes()]})


def _description(driver: Driver, question: Question) -> Answer:
    power = driver.servers().get(question.server_uuid)
    if power is None:
        return Answer(refusal=Refusal.FAILED, error=f"server {question.server_uuid} is not here")
    spec = None
    if isinstance(driver, Remembering):
        spec = msgspec.to_builtins(driver.recall(question.server_uuid))
    return Answer({"power_state": power, "spec": spec})


def _image_cache(driver: Driver, _question: Question) -> Answer:
    images = driver.cached_images() if isinstance(driver, ImageCaching) else []
    return Answer({"images": msgspec.to_builtins(images)})


def _change_password(driver: Driver, question: Question) -> Answer:
    changing, password = require(driver, PasswordChanging), str(question.payload["password"])
    power = driver.power(question.server_uuid, question.node_uuid)
    if power != RUNNING:
        return Answer({"power_state": power}, Refusal.NOT_RUNNING, "the server does not run")
    changing.change_password(question.server_uuid, question.node_uuid, password)
    return Answer()


_KINDS: Mapping[str, Callable[[Driver, Question], Answer]] = {
    QuestionKind.CONSOLE_LOG: _console_log,
    QuestionKind.DIAGNOSTICS: _diagnostics,
    QuestionKind.CONSOLE: _console,
    QuestionKind.TOPOLOGY: _topology,
    QuestionKind.HOLDINGS: _holdings,
    QuestionKind.DESCRIPTION: _description,
    QuestionKind.IMAGE_CACHE: _image_cache,
    QuestionKind.CHANGE_PASSWORD: _change_password,
}
