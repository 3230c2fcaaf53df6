"""The bus over RabbitMQ, by way of oslo.messaging: a durable queue for each host, and one for all conductors.

Messages are sent as oslo.messaging sends notifications, not as its calls: then the sender makes the queue if
it is not there yet, the receiver gets them in batches, and acknowledges them once it has dealt with them. If
it is killed before that, another one gets them, or the same one after its restart. So a message may come
twice, which the contract allows, but not get lost.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from oslo_config import cfg
from prometheus_client import Counter

from moorage.bus import messaging_questions
from moorage.bus.contract import Answer, BusError, Heartbeat, NotNowError, Question, Result, Task
from moorage.bus.messaging_questions import QuestionEndpoint
from moorage.bus.oslo import oslo_messaging, set_defaults
from moorage.bus.polling import block_on_first_message

LOG = logging.getLogger(__name__)
SEND_FAILURES = Counter("moorage_bus_send_failures_total", "Messages that RabbitMQ did not take.", ["kind"])
LISTEN_FAILURES = Counter("moorage_bus_listen_failures_total", "Times that RabbitMQ refused a listener.")
REQUEUED = Counter("moorage_bus_requeued_total", "Messages put back because they could not be dealt with.")
T = TypeVar("T")

_BATCH = 100
_BATCH_SECONDS = 0.002
_PAUSE_BEFORE_REQUEUE = 1.0
_FIRST_LISTEN_PAUSE = 1.0
_LONGEST_LISTEN_PAUSE = 30.0
_CONDUCTORS = "conductors"
_PRIORITY = "info"

Handler = Callable[[list[str]], None]
"""Takes the bodies of several messages of one kind."""


def _queue_of(host: str) -> str:
    return f"agent.{host}"


class _Endpoint:
    """Where oslo.messaging delivers batches."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers

    def info(self, messages: Sequence[Mapping[str, Any]]) -> Any:
        """Hand messages of the same kind over together; if that fails, all go back into the queue."""
        try:
            for kind, group in itertools.groupby(messages, key=lambda message: message["event_type"]):
                handler = self._handlers.get(kind)
                if handler is None:
                    LOG.error("messages of the unknown kind %r are dropped", kind)
                else:
                    handler([message["payload"] for message in group])
        except NotNowError as error:
            LOG.warning("%d messages go back into their queue for now: %s", len(messages), error)
            return _requeue(len(messages))
        except Exception:
            LOG.exception("%d messages could not be dealt with, and go back into their queue", len(messages))
            return _requeue(len(messages))
        return oslo_messaging.NotificationResult.HANDLED


def _requeue(count: int) -> Any:
    REQUEUED.inc(count)
    time.sleep(_PAUSE_BEFORE_REQUEUE)
    return oslo_messaging.NotificationResult.REQUEUE


class _Side:
    """What both sides have in common: a way to send, and listeners to close."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        set_defaults(conf)
        self._exchange = conf.bus.exchange
        self._retries = conf.bus.send_retries
        self._transport = oslo_messaging.get_notification_transport(conf, url=conf.transport_url)
        self._listeners: list[_Listener] = []

    def _send(self, queue: str, kind: str, body: Any) -> None:
        message = {
            "event_type": kind,
            "priority": _PRIORITY,
            "payload": msgspec.json.encode(body).decode(),
        }
        target = oslo_messaging.Target(exchange=self._exchange, topic=f"{self._topic(queue)}.{_PRIORITY}")
        try:
            # What a Notifier does, which would swallow the error that our senders have to know of.
            self._transport._send_notification(target, {}, message, version=2.0, retry=self._retries)
        except Exception as error:
            SEND_FAILURES.labels(kind).inc()
            raise BusError(f"RabbitMQ did not take a message: {error}") from error

    def _listen(self, queue: str, handlers: Mapping[str, Handler]) -> None:
        target = oslo_messaging.Target(exchange=self._exchange, topic=self._topic(queue))

        def make() -> Any:
            return block_on_first_message(
                oslo_messaging.get_batch_notification_listener(
                    self._transport,
                    [target],
                    [_Endpoint(handlers)],
                    allow_requeue=True,
                    batch_size=_BATCH,
                    batch_timeout=_BATCH_SECONDS,
                )
            )

        self._listeners.append(_Listener(target.topic, make))

    def _topic(self, queue: str) -> str:
        """Queues of one broker share their names, whatever the exchange."""
        return f"{self._exchange}.{queue}"

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        self._transport.cleanup()


class _Listener:
    """A server that connects in a thread of its own: RabbitMQ may be away for long when we start.

    It may also refuse, as when a queue is there but of another type: then we try until somebody mends it.
    """

    def __init__(self, topic: str, make: Callable[[], Any]) -> None:
        self._topic = topic
        self._make = make
        self._lock = threading.Lock()
        self._server: Any = None
        self._closed = threading.Event()
        threading.Thread(target=self._start, name="bus", daemon=True).start()

    def _start(self) -> None:
        pause = _FIRST_LISTEN_PAUSE
        while not self._closed.is_set():
            server = self._make()
            try:
                server.start()
            except Exception as error:
                LISTEN_FAILURES.inc()
                LOG.error("can't listen to %s, next try in %.0f s: %s", self._topic, pause, error)
                self._closed.wait(pause)
                pause = min(pause * 2, _LONGEST_LISTEN_PAUSE)
            else:
                with self._lock:
                    self._server = server
                return

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.stop()
            server.wait()


class MessagingConductorSide(_Side):
    """All conductors draw from the same queue."""

    def cast(self, host: str, tasks: list[Task]) -> None:
        self._send(_queue_of(host), "tasks", tasks)

    def receive(
        self, on_results: Callable[[list[Result]], None], on_heartbeat: Callable[[Heartbeat], None]
    ) -> None:
        def results(bodies: list[str]) -> None:
            found = [result for batch in _decoded(bodies, list[Result]) for result in batch]
            if found:
                on_results(found)

        def heartbeats(bodies: list[str]) -> None:
            for heartbeat in _decoded(bodies, Heartbeat):
                on_heartbeat(heartbeat)

        self._listen(_CONDUCTORS, {"results": results, "heartbeat": heartbeats})


class MessagingAgentSide(_Side):
    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__(conf)
        self._questions = oslo_messaging.get_rpc_transport(conf, url=conf.transport_url)

    def report(self, results: list[Result]) -> None:
        self._send(_CONDUCTORS, "results", results)

    def beat(self, heartbeat: Heartbeat) -> None:
        self._send(_CONDUCTORS, "heartbeat", heartbeat)

    def receive(self, host: str, on_tasks: Callable[[list[Task]], None]) -> None:
        def tasks(bodies: list[str]) -> None:
            found = [task for batch in _decoded(bodies, list[Task]) for task in batch]
            if found:
                on_tasks(found)

        self._listen(_queue_of(host), {"tasks": tasks})

    def answer(self, host: str, on_question: Callable[[Question], Answer]) -> None:
        target = messaging_questions.target(self._exchange, host)

        def make() -> Any:
            return oslo_messaging.get_rpc_server(self._questions, target, [QuestionEndpoint(on_question)])

        self._listeners.append(_Listener(target.topic, make))

    def close(self) -> None:
        super().close()
        self._questions.cleanup()


def _decoded(bodies: Iterable[str], kind: type[T]) -> Iterable[T]:
    """What makes no sense will not make more sense if it comes again."""
    for body in bodies:
        try:
            yield msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError:
            LOG.exception("a message makes no sense, and is dropped")
