"""Questions over RabbitMQ, which nobody minds losing: to a queue of the host, answered to one of the asker.

Tasks are not sent like this (`messaging.py` says why): a question changes nothing, and whoever asked is told
when no answer comes. oslo.messaging's own calls are not used: who answers one has to be allowed to send to
every queue, other agents' included.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec
from oslo_config import cfg
from prometheus_client import Counter

from moorage.bus import connections, queues
from moorage.bus.answering import found_out
from moorage.bus.contract import Answer, NoAnswerError, Question, Refusal
from moorage.bus.listener import Listener
from moorage.bus.older_questions import OlderCalls
from moorage.bus.oslo import oslo_messaging, set_defaults
from moorage.bus.queues import PRIORITY, QueueNames
from moorage.bus.refusals import REFUSALS, RefusalReason, RefusedError
from moorage.bus.seals import HostSide, MasterSide, Signing
from moorage.core.elastic_pool import ElasticPool

LOG = logging.getLogger(__name__)
UNANSWERED = Counter("moorage_bus_unanswered_total", "Questions that no agent answered in time.")
_QUESTION = "question"
_ANSWER = "answer"
_MOST_AT_ONCE = 32
_SPARE = 1.0
"""Seconds after which a call that should have ended is left to itself."""


class _Endpoint:
    """Where oslo.messaging delivers messages of one kind."""

    def __init__(self, kind: str, handle: Callable[[Mapping[str, Any], str], None]) -> None:
        self._kind = kind
        self._handle = handle

    def info(self, context: Mapping[str, Any], _publisher: Any, kind: str, body: Any, _about: Any) -> None:
        """What fails is not tried again: whoever asked has waited long enough."""
        if kind != self._kind:
            LOG.error("a message of the unknown kind %r is dropped", kind)
            return
        try:
            self._handle(context, str(body))
        except RefusedError as error:
            REFUSALS.refuse(kind, error)
        except Exception as error:
            LOG.warning("a message of the kind %s could not be dealt with: %s", kind, error)


def _listen(transport: Any, names: QueueNames, queue_name: str, endpoint: _Endpoint) -> Listener:
    target = oslo_messaging.Target(exchange=names.exchange, topic=queues.topic(queue_name))
    return Listener(
        target.topic, lambda: oslo_messaging.get_notification_listener(transport, [target], [endpoint])
    )


class QuestionDesk:
    """Where the agent of a host is asked."""

    def __init__(
        self, transport: Any, names: QueueNames, own: HostSide, on_question: Callable[[Question], Answer]
    ) -> None:
        self._transport = transport
        self._names = names
        self._own = own
        self._on_question = on_question

    def listen(self, host: str) -> Listener:
        endpoint = _Endpoint(_QUESTION, partial(self._answer, host))
        return _listen(self._transport, self._names, self._names.questions(host), endpoint)

    def _answer(self, host: str, context: Mapping[str, Any], body: str) -> None:
        origin = self._own.seals.check(_QUESTION, context, body)
        if origin.host is not None:
            self._own.questions.require_new(origin)
        text = msgspec.json.encode(found_out(self._on_question, body)).decode()
        message = {"event_type": _ANSWER, "priority": PRIORITY, "payload": text}
        asker, _, _ = origin.nonce.partition(".")
        target = oslo_messaging.Target(exchange=self._names.exchange, topic=self._names.answers(asker))
        sealed = self._own.seals.make(_ANSWER, host, text, origin.nonce)
        # To be late is harmless: nobody waits for this nonce any more.
        self._transport._send_notification(target, sealed, message, version=2.0, retry=0)


class _Expected(NamedTuple):
    host: str
    answer: queue.SimpleQueue[Answer]


class MessagingAskingSide:
    def __init__(self, conf: cfg.ConfigOpts) -> None:
        set_defaults(conf)
        self._conf = conf
        self._pool = ElasticPool("asking", _MOST_AT_ONCE)
        self._free = threading.Semaphore(_MOST_AT_ONCE)
        self._retries = conf.bus.send_retries
        self._names = QueueNames(conf.bus.exchange)
        self._seals = MasterSide(conf).seals
        self._transport = connections.transport(conf)
        self._asker = queues.new_asker()
        self._expected: dict[str, _Expected] = {}
        """By nonce."""
        self._lock = threading.Lock()
        self._answers: Listener | None = None
        self._older: OlderCalls | None = None

    def ask(self, host: str, question: Question, timeout: float) -> Answer:
        """Without a broker, oslo.messaging waits for one: so questions have threads that may be left."""
        if not self._free.acquire(blocking=False):
            UNANSWERED.inc()
            raise NoAnswerError("too many questions wait for RabbitMQ")
        try:
            return self._pool.call(partial(self._call, host, question, timeout)).result(timeout + _SPARE)
        except TimeoutError as error:
            UNANSWERED.inc()
            raise NoAnswerError("RabbitMQ does not take questions") from error
        except (oslo_messaging.MessagingTimeout, queue.Empty) as error:
            UNANSWERED.inc()
            raise NoAnswerError(f"the agent of host {host} did not answer within {timeout:g} s") from error
        except oslo_messaging.MessageUndeliverable as error:
            UNANSWERED.inc()
            raise NoAnswerError(f"no agent of host {host} takes questions") from error
        except Exception as error:
            UNANSWERED.inc()
            raise NoAnswerError(f"the agent of host {host} could not be asked: {error}") from error

    def _call(self, host: str, question: Question, timeout: float) -> Answer:
        deadline = time.monotonic() + timeout
        try:
            return self._asked(host, question, deadline)
        except oslo_messaging.MessageUndeliverable:
            if self._seals.signing is Signing.REQUIRE:
                raise
            return self._older_calls().ask(host, question, max(deadline - time.monotonic(), 0.1))
        finally:
            self._free.release()

    def _asked(self, host: str, question: Question, deadline: float) -> Answer:
        if not self._listener().listens_within(deadline - time.monotonic()):
            raise TimeoutError
        nonce = f"{self._asker}.{secrets.token_hex(16)}"
        expected = _Expected(host, queue.SimpleQueue())
        self._expected[nonce] = expected
        text = msgspec.json.encode(question).decode()
        message = {"event_type": _QUESTION, "priority": PRIORITY, "payload": text}
        target = oslo_messaging.Target(exchange=self._names.exchange, topic=self._names.questions(host))
        left = max(deadline - time.monotonic(), 0.1)
        try:
            # Without its queue, an agent is not there, or too old for this: that shows at once.
            self._transport._send(
                target,
                self._seals.make(_QUESTION, host, text, nonce),
                message,
                timeout=left,
                retry=self._retries,
                transport_options=oslo_messaging.TransportOptions(at_least_once=True),
            )
            return expected.answer.get(timeout=max(deadline - time.monotonic(), 0.0))
        finally:
            del self._expected[nonce]

    def _take(self, context: Mapping[str, Any], body: str) -> None:
        """Only the host that was asked can answer: the nonce is sealed with its key."""
        origin = self._seals.check(_ANSWER, context, body)
        expected = self._expected.get(origin.nonce)
        if expected is None:  # it came too late, or again
            LOG.info("host %r answers what nobody asks any more", origin.host)
            return
        if origin.host not in (None, expected.host):
            sentence = f"host {expected.host} was asked"
            raise RefusedError(RefusalReason.OTHER_HOST, origin.host or "", sentence)
        try:
            expected.answer.put(msgspec.json.decode(body, type=Answer))
        except msgspec.DecodeError as error:
            expected.answer.put(Answer(refusal=Refusal.FAILED, error=f"the answer makes no sense: {error}"))

    def _listener(self) -> Listener:
        with self._lock:
            if self._answers is None:
                endpoint = _Endpoint(_ANSWER, self._take)
                self._answers = _listen(
                    self._transport, self._names, self._names.answers(self._asker), endpoint
                )
            return self._answers

    def _older_calls(self) -> OlderCalls:
        with self._lock:
            if self._older is None:
                self._older = OlderCalls(self._conf)
            return self._older

    def close(self) -> None:
        """What waits for a broker that is away is left to itself, too."""
        ends = [one.close for one in (self._answers, self._older) if one is not None]
        for end in (*ends, self._transport.cleanup):
            with contextlib.suppress(TimeoutError):
                self._pool.call(end).result(_SPARE)
