"""Questions over RabbitMQ: calls of oslo.messaging, which nobody minds losing.

Tasks are not sent like this (`messaging.py` says why): a question changes nothing, and whoever asked is told
when no answer comes.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from oslo_config import cfg
from prometheus_client import Counter

from moorage.bus.contract import Answer, NoAnswerError, Question, Refusal
from moorage.bus.oslo import oslo_messaging, set_defaults
from moorage.core.elastic_pool import ElasticPool

LOG = logging.getLogger(__name__)
UNANSWERED = Counter("moorage_bus_unanswered_total", "Questions that no agent answered in time.")
_METHOD = "answer"
_MOST_AT_ONCE = 32
_SPARE = 1.0
"""Seconds after which a call that should have ended is left to itself."""


def target(exchange: str, host: str | None = None) -> Any:
    """Queues of one broker share their names, whatever the exchange."""
    return oslo_messaging.Target(exchange=exchange, topic=f"{exchange}.questions", server=host)


class QuestionEndpoint:
    """Where oslo.messaging delivers questions."""

    def __init__(self, on_question: Callable[[Question], Answer]) -> None:
        self._on_question = on_question

    def answer(self, _context: dict[str, Any], question: str) -> str:
        try:
            answer = self._on_question(msgspec.json.decode(question, type=Question))
        except msgspec.DecodeError as error:
            answer = Answer(refusal=Refusal.UNSUPPORTED, error=f"the question makes no sense: {error}")
        except Exception as error:
            LOG.exception("a question could not be answered")
            answer = Answer(refusal=Refusal.FAILED, error=str(error))
        return msgspec.json.encode(answer).decode()


class MessagingAskingSide:
    def __init__(self, conf: cfg.ConfigOpts) -> None:
        set_defaults(conf)
        self._pool = ElasticPool("asking", _MOST_AT_ONCE)
        self._free = threading.Semaphore(_MOST_AT_ONCE)
        self._retries = conf.bus.send_retries
        self._transport = oslo_messaging.get_rpc_transport(conf, url=conf.transport_url)
        # Without its queue, an agent is not there, or too old for questions: that shows at once.
        self._client = oslo_messaging.get_rpc_client(
            self._transport,
            target(conf.bus.exchange),
            transport_options=oslo_messaging.TransportOptions(at_least_once=True),
        )

    def ask(self, host: str, question: Question, timeout: float) -> Answer:
        """Without a broker, calls of oslo.messaging wait for one: so they have threads that may be left."""
        if not self._free.acquire(blocking=False):
            UNANSWERED.inc()
            raise NoAnswerError("too many questions wait for RabbitMQ")
        try:
            return self._pool.call(partial(self._call, host, question, timeout)).result(timeout + _SPARE)
        except TimeoutError as error:
            UNANSWERED.inc()
            raise NoAnswerError("RabbitMQ does not take questions") from error
        except oslo_messaging.MessagingTimeout as error:
            UNANSWERED.inc()
            raise NoAnswerError(f"the agent of host {host} did not answer within {timeout:g} s") from error
        except oslo_messaging.MessageUndeliverable as error:
            UNANSWERED.inc()
            raise NoAnswerError(f"no agent of host {host} takes questions") from error
        except Exception as error:
            UNANSWERED.inc()
            raise NoAnswerError(f"the agent of host {host} could not be asked: {error}") from error

    def _call(self, host: str, question: Question, timeout: float) -> Answer:
        try:
            call = self._client.prepare(server=host, timeout=timeout, retry=self._retries)
            told = call.call({}, _METHOD, question=msgspec.json.encode(question).decode())
            return msgspec.json.decode(told, type=Answer)
        finally:
            self._free.release()

    def close(self) -> None:
        """What waits for a broker that is away is left to itself, too."""
        with contextlib.suppress(TimeoutError):
            self._pool.call(self._transport.cleanup).result(_SPARE)
