"""A server for one process: threads work on requests, and none of them ever waits for a client.

Waitress reads requests and writes answers in a loop of its own, and hands a request to a thread when all of
it is there. So clients that are slow, or do nothing at all, cost a connection and no thread; and connections
that keep us waiting too long are closed.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

from moorage.http.auth import Wsgi

MOST_CONNECTIONS = 500
"""One more, and the one that has kept us waiting longest is closed."""
IDLE_SECONDS = 120
"""After which a connection that is not used is closed."""
REQUEST_SECONDS = 60.0
"""That a request may take to arrive, from its first byte to its last one."""
ANSWER_SECONDS = 120.0
"""That a client may take to read an answer."""
_LOOK_SECONDS = 1
_LAST_ANSWERS_SECONDS = 2.0
_SPARE_BODY = 1024 * 1024
"""A body that is a little too large is read, and refused in the API's words; a larger one is not read."""
_ASIDE = frozenset({"/healthz", "/metrics"})
"""Have threads of their own: whoever watches us wants to know most when all others are busy."""


class HttpServer:
    """Listens from the beginning; raises OSError if it can't."""

    def __init__(self, listen: str, port: int, application: Wsgi, *, threads: int, longest_body: int) -> None:
        host = f"[{listen}]" if ":" in listen else listen
        self._map: dict[int, Any] = {}
        self._server = _Server(
            application,
            map=self._map,
            listen=f"{host}:{port}",
            threads=threads,
            connection_limit=10 * MOST_CONNECTIONS,  # ours comes first
            cleanup_interval=_LOOK_SECONDS,
            channel_timeout=IDLE_SECONDS,
            max_request_body_size=longest_body + _SPARE_BODY,
            asyncore_use_poll=True,
            clear_untrusted_proxy_headers=False,
            log_socket_errors=False,
            ident=None,
        )
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # it warns of every request that waits

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Take no more requests, let those at work end, and let their answers go out."""
        self._server.accepting = False
        self._server.finish(seconds)
        deadline = time.monotonic() + _LAST_ANSWERS_SECONDS
        while self._server.has_answers and time.monotonic() < deadline:
            time.sleep(0.01)
        self._ended = True
        self._server.pull_trigger()
        self._thread.join(5.0)

    def _run(self) -> None:
        while not self._ended:
            wasyncore.loop(timeout=1.0, use_poll=True, map=self._map, count=1)
        wasyncore.close_all(self._map, ignore_all=True)


class _Channel(HTTPChannel):  # type: ignore[misc]
    """One connection."""

    begun_at: float | None = None
    """When the first part came of a request that has not arrived as a whole."""
    answering_since: float | None = None

    def received(self, data: bytes) -> bool:
        taken: bool = super().received(data)
        self.begun_at = None if self.request is None else self.begun_at or time.monotonic()
        return taken

    def keeps_us_waiting(self, now: float) -> bool:
        if self.total_outbufs_len and not self.requests:
            self.answering_since = self.answering_since or now
        else:
            self.answering_since = None
        return (self.begun_at is not None and now - self.begun_at > REQUEST_SECONDS) or (
            self.answering_since is not None and now - self.answering_since > ANSWER_SECONDS
        )


class _Server(TcpWSGIServer):  # type: ignore[misc]
    channel_class = _Channel

    def __init__(self, *args: Any, **options: Any) -> None:
        self._aside = ThreadedTaskDispatcher()
        self._aside.set_thread_count(2)
        super().__init__(*args, **options)

    def add_task(self, task: _Channel) -> None:
        aside = task.requests[0].path in _ASIDE
        (self._aside if aside else self.task_dispatcher).add_task(task)

    def handle_accept(self) -> None:
        super().handle_accept()
        if len(self.active_channels) > MOST_CONNECTIONS:
            waiting = (channel for channel in self.active_channels.values() if not channel.requests)
            longest = min(waiting, key=lambda channel: channel.last_activity, default=None)
            if longest is not None:
                longest.handle_close()

    def maintenance(self, now: float) -> None:
        super().maintenance(now)
        clock = time.monotonic()
        for channel in self.active_channels.values():
            if channel.keeps_us_waiting(clock):
                channel.will_close = True

    def finish(self, seconds: float) -> None:
        self.task_dispatcher.shutdown(timeout=seconds)
        self._aside.set_thread_count(0)

    @property
    def has_answers(self) -> bool:
        return any(channel.total_outbufs_len for channel in list(self.active_channels.values()))
