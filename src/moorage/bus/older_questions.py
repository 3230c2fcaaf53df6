"""Questions as releases before this one ask and answer them: calls of oslo.messaging.

Whoever answers a call has to be allowed to send to any queue, so agents don't that seals are required of, or
that have a user of RabbitMQ for themselves. To
be removed with the release after the next, as no process has to speak with such ones any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from oslo_config import cfg

from moorage.bus.answering import found_out
from moorage.bus.contract import Answer, Question
from moorage.bus.listener import Listener
from moorage.bus.oslo import oslo_messaging
from moorage.bus.queues import QueueNames

_METHOD = "answer"


def _target(exchange: str, host: str | None = None) -> Any:
    return oslo_messaging.Target(exchange=exchange, topic=f"{exchange}.questions", server=host)


class _Endpoint:
    """Where oslo.messaging delivers calls."""

    def __init__(self, on_question: Callable[[Question], Answer]) -> None:
        self._on_question = on_question

    def answer(self, _context: dict[str, Any], question: str) -> str:
        return msgspec.json.encode(found_out(self._on_question, question)).decode()


def listen(
    transport: Any, names: QueueNames, host: str, on_question: Callable[[Question], Answer]
) -> Listener:
    target = _target(names.exchange, host)
    return Listener(
        f"{target.topic} of older askers",
        lambda: oslo_messaging.get_rpc_server(transport, target, [_Endpoint(on_question)]),
        dispensable=True,
    )


class OlderCalls:
    """Asks agents that know only calls."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._retries = conf.bus.send_retries
        self._transport = oslo_messaging.get_rpc_transport(conf, url=conf.transport_url)
        self._client = oslo_messaging.get_rpc_client(
            self._transport,
            _target(conf.bus.exchange),
            transport_options=oslo_messaging.TransportOptions(at_least_once=True),
        )

    def ask(self, host: str, question: Question, timeout: float) -> Answer:
        call = self._client.prepare(server=host, timeout=timeout, retry=self._retries)
        told = call.call({}, _METHOD, question=msgspec.json.encode(question).decode())
        return msgspec.json.decode(told, type=Answer)

    def close(self) -> None:
        self._transport.cleanup()
