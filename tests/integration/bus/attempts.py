"""All that somebody tries who has the files of host-1's agent, on the bus and in Placement.

Each function answers whether it worked.

What the broker refuses is an exception. What is refused by whoever gets it shows in a counter.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import amqp  # type: ignore[import-untyped]
import msgspec
from kombu.transport.pyamqp import Channel
from prometheus_client import Counter

from moorage.bus.contract import Answer, Heartbeat, Question, Result
from moorage.bus.refusals import REFUSED
from moorage.bus.seals import Seals, Signing
from moorage.placement.store.own_trees import REFUSED as REFUSED_IN_PLACEMENT
from tests.integration.bus.fleet import QUESTION, Fleet, task
from tests.support import two_hosts
from tests.support.processes import wait_until

Attempt = Callable[[Fleet], bool]


def refused(counter: Counter = REFUSED) -> float:
    """So many messages were refused by whoever got them."""
    return sum(
        sample.value
        for family in counter.collect()
        for sample in family.samples
        if sample.name.endswith("_total")
    )


class _Channel:
    def __init__(self, fleet: Fleet, host: str | None) -> None:
        self._connection = fleet.connect(host)

    def __enter__(self) -> Any:
        return self._connection.channel()  # type: ignore[no-untyped-call]

    def __exit__(self, *_error: object) -> None:
        self._connection.release()  # type: ignore[no-untyped-call]


def by_broker(work: Callable[[Fleet, Channel], object]) -> Attempt:
    """The broker answers at once, and closes the channel on who may not."""

    def attempt(fleet: Fleet) -> bool:
        with _Channel(fleet, "host-1") as channel:
            try:
                work(fleet, channel)
            except amqp.AccessRefused:
                return False
            return True

    return attempt


def send(
    channel: Any, exchange: str, key: str, kind: str, body: str, context: dict[str, Any] | None = None
) -> None:
    """As oslo.messaging does, without asking it."""
    inner = {"event_type": kind, "priority": "info", "payload": body, "_unique_id": secrets.token_hex(8)}
    inner |= {f"_context_{name}": value for name, value in (context or {}).items()}
    text = json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps(inner)})
    message = amqp.Message(text, content_type="application/json", content_encoding="utf-8", delivery_mode=2)
    channel.basic_publish_confirm(message, exchange=exchange, routing_key=key)


def sealed(fleet: Fleet, kind: str, as_host: str, body: str, nonce: str = "") -> dict[str, Any]:
    """With all the keys that host-1's files have."""
    return Seals(Signing.REQUIRE, lambda _host: fleet.keys_of("host-1")).make(kind, as_host, body, nonce)


def _arrives(fleet: Fleet, found: Callable[[], bool], work: Callable[[], None]) -> bool:
    """Whether it comes through; if not, somebody refused it."""
    before = refused()
    try:
        work()
    except amqp.AccessRefused:
        return False
    wait_until(lambda: found() or refused() > before, "either", 20)
    return found()


def message(
    key: Callable[[Fleet], str],
    kind: str,
    body: Any,
    found: Callable[[Fleet], bool],
    *,
    as_host: str | None,
    by: str | None = "host-1",
    default_exchange: bool = False,
) -> Attempt:
    """A message of one's own making: sealed as a host, or not at all; by an administrator if `by` is None."""

    def attempt(fleet: Fleet) -> bool:
        text = msgspec.json.encode(body).decode()
        context = sealed(fleet, kind, as_host, text) if as_host is not None else {}
        exchange = "" if default_exchange else fleet.exchange
        with _Channel(fleet, by) as channel:
            return _arrives(
                fleet,
                lambda: found(fleet),
                lambda: send(channel, exchange, key(fleet), kind, text, context),
            )

    return attempt


def _task_of(number: int) -> Callable[[Fleet], bool]:
    return lambda fleet: any(one.operation_id == number for one in fleet.tasks["host-2"])


def _heartbeat_of(version: int) -> Callable[[Fleet], bool]:
    return lambda fleet: any(one.version == version for one in fleet.heartbeats)


def _result_of(number: int) -> Callable[[Fleet], bool]:
    return lambda fleet: any(one.operation_id == number for one in fleet.results)


def _host_2(fleet: Fleet) -> str:
    return fleet.names.agent("host-2")


def _questions_2(fleet: Fleet) -> str:
    return fleet.names.questions("host-2")


def _conductors(fleet: Fleet) -> str:
    return fleet.names.conductors


def _answers_of_the_asker(fleet: Fleet) -> str:
    return fleet.names.answers(fleet.asking._asker)


def dead_letters(fleet: Fleet) -> bool:
    """Its own queue, made anew so that what is refused there goes on to host-2: past the broker's checks."""
    own = fleet.names.agent("host-1")
    arguments = {"x-dead-letter-exchange": fleet.exchange, "x-dead-letter-routing-key": _host_2(fleet)}
    fleet.agents["host-1"].close()
    with _Channel(fleet, "host-1") as channel:
        channel.queue_delete(own)
        channel.queue_declare(own, durable=True, auto_delete=False, arguments=arguments)
        channel.queue_bind(own, fleet.exchange, own)
        before = refused()
        try:
            with _Channel(fleet, None) as conductors:
                text = msgspec.json.encode([task(901)]).decode()
                context = sealed(fleet, "tasks", "host-1", text) if fleet.isolated else {}
                send(conductors, fleet.exchange, own, "tasks", text, context)
            got = channel.basic_get(own)
            channel.basic_reject(got.delivery_tag, requeue=False)
        except amqp.AccessRefused:
            return False
        found = _task_of(901)
        wait_until(lambda: found(fleet) or refused() > before, "either", 20)
        return found(fleet)


def forged_answer(fleet: Fleet) -> bool:
    """The question's nonce is told to whoever is asked: here host-1 has heard it from somebody."""
    got: list[Answer] = []
    gate = threading.Event()

    def slow(_question: Question) -> Answer:
        gate.wait(20)
        return Answer({"output": "true"})

    with slow_host(fleet, slow):
        asks = threading.Thread(target=lambda: got.append(fleet.asking.ask("host-2", QUESTION, 15)))
        asks.start()
        wait_until(lambda: bool(fleet.asking._expected), "the question", 10)
        (nonce,) = fleet.asking._expected
        text = msgspec.json.encode(Answer({"output": "false"})).decode()
        before = refused()
        with _Channel(fleet, "host-1") as channel:
            for as_host in ("host-1", "host-2"):
                context = sealed(fleet, "answer", as_host, text, nonce)
                send(channel, fleet.exchange, _answers_of_the_asker(fleet), "answer", text, context)
        wait_until(lambda: bool(got) or refused() >= before + 2, "either", 20)
        gate.set()
        asks.join(20)
    return got == [Answer({"output": "false"})]


@contextmanager
def slow_host(fleet: Fleet, answer: Callable[[Question], Answer]) -> Any:
    usual, fleet.answer = fleet.answer, answer
    try:
        yield
    finally:
        fleet.answer = usual


def replayed_question(fleet: Fleet) -> bool:
    """Somebody who can see everything on the broker sends a question to host-2 once more."""
    body = msgspec.json.encode(QUESTION).decode()
    nonce = f"{fleet.asking._asker}.{secrets.token_hex(16)}"
    context = fleet.asking._seals.make("question", "host-2", body, nonce)
    heard = len(fleet.questions)
    with _Channel(fleet, None) as channel:
        send(channel, fleet.exchange, _questions_2(fleet), "question", body, context)
        wait_until(lambda: len(fleet.questions) > heard, "the question", 20)
        return _arrives(
            fleet,
            lambda: len(fleet.questions) > heard + 1,
            lambda: send(channel, fleet.exchange, _questions_2(fleet), "question", body, context),
        )


def in_placement(work: two_hosts.Attempt) -> Attempt:
    """Against new providers of host-2. What is refused there has changed nothing, and is counted."""

    def attempt(fleet: Fleet) -> bool:
        hosts = two_hosts.TwoHosts(fleet.placement, fleet.login).make()
        before, state = refused(REFUSED_IN_PLACEMENT), hosts.state()
        status = work(hosts)
        if status >= 300:
            assert status == 403
            assert refused(REFUSED_IN_PLACEMENT) == before + 1
            assert hosts.state() == state
        return status < 300

    return attempt


_HEARTBEAT = {number: Heartbeat("host-2", number) for number in (801, 802, 803)}
_RESULT = Result(711, "server-711", 1, True)

ATTEMPTS: dict[str, Attempt] = {
    "read the conductors' queue": by_broker(lambda f, c: c.basic_get(_conductors(f))),
    "read host-2's tasks": by_broker(lambda f, c: c.basic_get(_host_2(f))),
    "read host-2's questions": by_broker(lambda f, c: c.basic_get(_questions_2(f))),
    "read an API's answers": by_broker(lambda f, c: c.basic_get(_answers_of_the_asker(f))),
    "hear what conductors hear": by_broker(
        lambda f, c: c.queue_bind(f.names.agent("host-1"), f.exchange, _conductors(f))
    ),
    "hear what host-2 hears": by_broker(
        lambda f, c: c.queue_bind(f.names.agent("host-1"), f.exchange, _host_2(f))
    ),
    "hear everything": by_broker(lambda f, c: c.queue_bind(f.names.agent("host-1"), f.exchange, "#")),
    "make a queue": by_broker(lambda f, c: c.queue_declare(f"{f.exchange}.mine")),
    "make an exchange": by_broker(lambda f, c: c.exchange_declare(f"{f.exchange}-mine", "topic")),
    "task for host-2, unsealed": message(_host_2, "tasks", [task(601)], _task_of(601), as_host=None),
    "task for host-2, past the exchange": message(
        _host_2, "tasks", [task(602)], _task_of(602), as_host=None, default_exchange=True
    ),
    "task for host-2 as the broker's administrator, unsealed": message(
        _host_2, "tasks", [task(603)], _task_of(603), as_host=None, by=None
    ),
    "task for host-2 as the broker's administrator, own seal": message(
        _host_2, "tasks", [task(604)], _task_of(604), as_host="host-1", by=None
    ),
    "task for host-2 as the broker's administrator, forged seal": message(
        _host_2, "tasks", [task(605)], _task_of(605), as_host="host-2", by=None
    ),
    "question for host-2": message(
        _questions_2, "question", QUESTION, lambda f: len(f.questions) > f.heard, as_host="host-2"
    ),
    "question for host-2 as the broker's administrator": message(
        _questions_2, "question", QUESTION, lambda f: len(f.questions) > f.heard, as_host="host-2", by=None
    ),
    "question for host-2, recorded and sent again": replayed_question,
    "answer for host-2": forged_answer,
    "heartbeat of host-2, unsealed": message(
        _conductors, "heartbeat", _HEARTBEAT[801], _heartbeat_of(801), as_host=None
    ),
    "heartbeat of host-2, own seal": message(
        _conductors, "heartbeat", _HEARTBEAT[802], _heartbeat_of(802), as_host="host-1"
    ),
    "heartbeat of host-2, forged seal": message(
        _conductors, "heartbeat", _HEARTBEAT[803], _heartbeat_of(803), as_host="host-2"
    ),
    "result of host-2's task": message(_conductors, "results", [_RESULT], _result_of(711), as_host="host-1"),
    "task for host-2 by dead letters": dead_letters,
    "let host-2 hear nothing": by_broker(lambda f, c: c.queue_unbind(_host_2(f), f.exchange, _host_2(f))),
    "empty host-2's queue": by_broker(lambda f, c: c.queue_purge(_host_2(f))),
    "delete host-2's queue": by_broker(lambda f, c: c.queue_delete(_host_2(f))),
    "empty the conductors' queue": by_broker(lambda f, c: c.queue_purge(_conductors(f))),
    "delete the conductors' queue": by_broker(lambda f, c: c.queue_delete(_conductors(f))),
    "delete the exchange": by_broker(lambda f, c: c.exchange_delete(f.exchange)),
    **{f"Placement: {name}": in_placement(work) for name, work in two_hosts.ATTEMPTS.items()},
}
