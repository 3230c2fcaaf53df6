"""The bus over RabbitMQ, by way of oslo.messaging: a durable queue for each host, and one for all conductors.

Messages are sent as oslo.messaging sends notifications, not as its calls: then a conductor that sends makes
the queue if it is not there yet, the receiver gets them in batches, and acknowledges them once it has dealt
with them. If it is killed before that, another one gets them, or the same one after its restart. So a message
may come twice, which the contract allows, but not get lost.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from oslo_config import cfg
from prometheus_client import Counter

from moorage.bus import connections, older_questions, queues
from moorage.bus.contract import Answer, BusError, Heartbeat, NotNowError, Question, Result, Task
from moorage.bus.listener import Listener
from moorage.bus.messaging_questions import QuestionDesk
from moorage.bus.oslo import oslo_messaging, set_defaults
from moorage.bus.polling import block_on_first_message
from moorage.bus.queues import PRIORITY, QueueNames
from moorage.bus.refusals import REFUSALS, RefusalReason, RefusedError
from moorage.bus.seals import HostSide, MasterSide, Seals, Signing

LOG = logging.getLogger(__name__)
SEND_FAILURES = Counter("moorage_bus_send_failures_total", "Messages that RabbitMQ did not take.", ["kind"])
REQUEUED = Counter("moorage_bus_requeued_total", "Messages put back because they could not be dealt with.")
T = TypeVar("T")

_BATCH = 100
_BATCH_SECONDS = 0.002
_PAUSE_BEFORE_REQUEUE = 1.0
_TASKS = "tasks"
_RESULTS = "results"
_HEARTBEAT = "heartbeat"


class Received(NamedTuple):
    """A message that is believed."""

    host: str | None
    """Whose it certainly is, or for whom; None if that is not known, and need not be."""
    body: str


Handler = Callable[[list[Received]], None]
"""Takes several messages of one kind."""


class _Endpoint:
    """Where oslo.messaging delivers batches."""

    def __init__(self, handlers: Mapping[str, Handler], seals: Seals) -> None:
        self._handlers = handlers
        self._seals = seals

    def info(self, messages: Sequence[Mapping[str, Any]]) -> Any:
        """Hand messages of the same kind over together; if that fails, all go back into the queue."""
        try:
            for kind, group in itertools.groupby(messages, key=lambda message: message["event_type"]):
                handler = self._handlers.get(kind)
                if handler is None:
                    LOG.error("messages of the unknown kind %r are dropped", kind)
                else:
                    handler(list(self._believed(kind, group)))
        except NotNowError as error:
            LOG.warning("%d messages go back into their queue for now: %s", len(messages), error)
            return _requeue(len(messages))
        except Exception:
            LOG.exception("%d messages could not be dealt with, and go back into their queue", len(messages))
            return _requeue(len(messages))
        return oslo_messaging.NotificationResult.HANDLED

    def _believed(self, kind: str, messages: Iterable[Mapping[str, Any]]) -> Iterable[Received]:
        for message in messages:
            body = str(message["payload"])
            try:
                yield Received(self._seals.check(kind, message["ctxt"], body).host, body)
            except RefusedError as error:
                REFUSALS.refuse(kind, error)


def _requeue(count: int) -> Any:
    REQUEUED.inc(count)
    time.sleep(_PAUSE_BEFORE_REQUEUE)
    return oslo_messaging.NotificationResult.REQUEUE


class _Side:
    """What both sides have in common: a way to send, and listeners to close."""

    def __init__(self, conf: cfg.ConfigOpts, seals: Seals, *, agent: bool) -> None:
        set_defaults(conf)
        self._names = QueueNames(conf.bus.exchange)
        self._retries = conf.bus.send_retries
        self._seals = seals
        self._transport = connections.transport(conf, agent=agent)
        self._listeners: list[Listener] = []

    def _send(self, queue: str, kind: str, host: str, body: Any) -> None:
        text = msgspec.json.encode(body).decode()
        message = {"event_type": kind, "priority": PRIORITY, "payload": text}
        target = oslo_messaging.Target(exchange=self._names.exchange, topic=queue)
        context = self._seals.make(kind, host, text)
        try:
            # What a Notifier does, which would swallow the error that our senders have to know of.
            self._transport._send_notification(target, context, message, version=2.0, retry=self._retries)
        except Exception as error:
            SEND_FAILURES.labels(kind).inc()
            raise BusError(f"RabbitMQ did not take a message: {error}") from error

    def _listen(self, queue: str, handlers: Mapping[str, Handler]) -> None:
        target = oslo_messaging.Target(exchange=self._names.exchange, topic=queues.topic(queue))

        def make() -> Any:
            return block_on_first_message(
                oslo_messaging.get_batch_notification_listener(
                    self._transport,
                    [target],
                    [_Endpoint(handlers, self._seals)],
                    allow_requeue=True,
                    batch_size=_BATCH,
                    batch_timeout=_BATCH_SECONDS,
                )
            )

        self._listeners.append(Listener(target.topic, make))

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        self._transport.cleanup()


class MessagingConductorSide(_Side):
    """All conductors draw from the same queue."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._master = MasterSide(conf)
        super().__init__(conf, self._master.seals, agent=False)

    def cast(self, host: str, tasks: list[Task]) -> None:
        if self._seals.signing is not Signing.OFF:
            tasks = [self._master.tickets.issue(host, task) for task in tasks]
        self._send(self._names.agent(host), _TASKS, host, tasks)

    def receive(
        self, on_results: Callable[[list[Result]], None], on_heartbeat: Callable[[Heartbeat], None]
    ) -> None:
        def results(messages: list[Received]) -> None:
            found = [
                msgspec.structs.replace(result, ticket="")
                for host, batch in _decoded(messages, list[Result])
                for result in batch
                if host is None or self._was_asked(host, result)
            ]
            if found:
                on_results(found)

        def heartbeats(messages: list[Received]) -> None:
            for host, heartbeat in _decoded(messages, Heartbeat):
                if host is None or _is_own(host, heartbeat):
                    on_heartbeat(heartbeat)

        self._listen(self._names.conductors, {_RESULTS: results, _HEARTBEAT: heartbeats})

    def _was_asked(self, host: str, result: Result) -> bool:
        if self._master.tickets.admits(host, result):
            return True
        if not result.ticket and self._seals.signing is Signing.ACCEPT:  # asked by a conductor that is older
            return True
        sentence = f"it was not asked for operation {result.operation_id} of server {result.server_uuid}"
        REFUSALS.refuse(_RESULTS, RefusedError(RefusalReason.NOT_ASKED, host, sentence))
        return False


def _is_own(host: str, heartbeat: Heartbeat) -> bool:
    if heartbeat.host == host:
        return True
    REFUSALS.refuse(
        _HEARTBEAT, RefusedError(RefusalReason.OTHER_HOST, host, f"it says to be of host {heartbeat.host!r}")
    )
    return False


class MessagingAgentSide(_Side):
    def __init__(self, conf: cfg.ConfigOpts, host: str = "") -> None:
        """`host` is whose keys it has; without any it may be everybody's."""
        self._own = HostSide(conf, host)
        super().__init__(conf, self._own.seals, agent=True)
        self._conf = conf
        self._host = host
        self._older: Any = None

    def report(self, results: list[Result]) -> None:
        self._send(self._names.conductors, _RESULTS, self._host, results)

    def beat(self, heartbeat: Heartbeat) -> None:
        self._send(self._names.conductors, _HEARTBEAT, heartbeat.host, heartbeat)

    def receive(self, host: str, on_tasks: Callable[[list[Task]], None]) -> None:
        def tasks(messages: list[Received]) -> None:
            found = [task for _, batch in _decoded(messages, list[Task]) for task in batch]
            if found:
                on_tasks(found)

        self._listen(self._names.agent(host), {_TASKS: tasks})

    def answer(self, host: str, on_question: Callable[[Question], Answer]) -> None:
        desk = QuestionDesk(self._transport, self._names, self._own, on_question)
        self._listeners.append(desk.listen(host))
        if self._seals.signing is not Signing.REQUIRE:
            self._older = oslo_messaging.get_rpc_transport(self._conf, url=self._conf.transport_url)
            self._listeners.append(older_questions.listen(self._older, self._names, host, on_question))

    def close(self) -> None:
        super().close()
        if self._older is not None:
            self._older.cleanup()


def _decoded(messages: Iterable[Received], kind: type[T]) -> Iterable[tuple[str | None, T]]:
    """What makes no sense will not make more sense if it comes again."""
    for message in messages:
        try:
            yield message.host, msgspec.json.decode(message.body, type=kind)
        except msgspec.DecodeError:
            LOG.exception("a message makes no sense, and is dropped")
