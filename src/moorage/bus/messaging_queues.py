"""The queues that RabbitMQ keeps for hosts.

They are durable, so that what an agent is asked for waits until it is back. That of a host which never comes
back stays until somebody deletes it, and is filled by whoever still tells that host something.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

import requests
from oslo_config import cfg

from moorage.bus import connections, queues
from moorage.bus.contract import BusError
from moorage.bus.host_queues import HostQueue, Whose
from moorage.bus.oslo import oslo_messaging, set_defaults
from moorage.bus.queues import QueueNames

T = TypeVar("T")
_SECONDS = 20.0
_NOT_FOUND = 404


class _RefusedError(BusError):
    """By the broker, with a code of AMQP: there is no such queue, or somebody listens to it."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class RabbitQueues:
    """AMQP knows no list of queues: that is the management plugin's, which not everybody has."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        set_defaults(conf)
        self._names = QueueNames(conf.bus.exchange)
        self._retries = conf.bus.send_retries
        self._management_url = conf.bus.management_url or ""
        self._url = oslo_messaging.TransportURL.parse(conf, conf.transport_url)
        self._transport = connections.transport(conf, agent=False)

    def hosts(self) -> Collection[str] | None:
        return self._waiting_by_host().keys() if self._management_url else None

    def waiting(self) -> Mapping[Whose, int]:
        own = self._look(self._names.conductors, "")
        found = {Whose.CONDUCTORS: 0 if own is None else own.messages}
        if self._management_url:
            found[Whose.HOSTS] = sum(self._waiting_by_host().values())
        return found

    def _waiting_by_host(self) -> dict[str, int]:
        before, _, after = self._names.agent("\0").partition("\0")
        return {
            name[len(before) : len(name) - len(after)]: messages
            for name, messages in self._listed().items()
            if name.startswith(before) and name.endswith(after) and len(name) > len(before) + len(after)
        }

    def of_host(self, host: str) -> list[HostQueue]:
        """Also that of its questions as the release before made it, which stays until somebody deletes it."""
        questions = self._names.questions(host)
        names = [self._names.agent(host), questions, queues.topic(questions)]
        return [found for name in names if (found := self._look(name, host)) is not None]

    def _look(self, name: str, host: str) -> HostQueue | None:
        try:
            told = self._do(lambda channel: channel.queue_declare(name, passive=True))
        except _RefusedError as error:
            if error.code == _NOT_FOUND:
                return None
            raise
        return HostQueue(name, host, told.message_count, told.consumer_count)

    def remove(self, queue: HostQueue) -> None:
        """Late: an agent that is back listens to it, so that it stays; one that comes makes it anew. Tasks
        that were in it for an agent between the two are lost, and asked for again at their deadline."""
        try:
            self._do(lambda channel: channel.queue_delete(queue.name, if_unused=True))
        except _RefusedError as error:
            if error.code != _NOT_FOUND:
                raise

    def _do(self, work: Callable[[Any], T]) -> T:
        """On a connection of its own: a refusal closes the channel, and oslo.messaging reads its own ones in
        a thread. Made like these, it knows the brokers and their certificates."""
        try:
            with self._transport._driver._get_connection(retry=self._retries) as context:
                copy = context.connection.connection.clone()
            with copy:
                copy.ensure_connection(max_retries=self._retries, timeout=_SECONDS)
                with copy.channel() as channel:
                    return work(channel)
        except Exception as error:
            code = getattr(error, "reply_code", None)
            if code:
                raise _RefusedError(f"RabbitMQ refused: {error}", code) from error
            raise BusError(f"RabbitMQ can't be asked for queues: {error}") from error

    def _listed(self) -> dict[str, int]:
        """By name, how many messages are in each; a queue that was made just now has no number yet."""
        parts = urlsplit(self._management_url)
        broker = self._url.hosts[0]
        user, password = broker.username, broker.password
        if parts.username:
            user, password = unquote(parts.username), unquote(parts.password or "")
        room = quote(self._url.virtual_host or "/", safe="")
        place = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")
        try:
            reply = requests.get(
                f"{place}/api/queues/{room}",
                params={"columns": "name,messages"},
                auth=(user or "", password or ""),
                timeout=_SECONDS,
            )
            reply.raise_for_status()
            return {str(one["name"]): int(one.get("messages") or 0) for one in reply.json()}
        except (requests.RequestException, ValueError, KeyError) as error:
            raise BusError(f"RabbitMQ's management API does not list queues: {error}") from error

    def close(self) -> None:
        self._transport.cleanup()
