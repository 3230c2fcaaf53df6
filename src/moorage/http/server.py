"""A server for one process: threads work on requests, and none of them ever waits for a client.

Waitress reads requests and writes answers in a loop of its own, and hands a request to a thread when all of
it is there. So clients that are slow, or do nothing at all, cost a connection and no thread; and connections
that keep us waiting too long are closed. Bodies that are too long to keep are the exception: they are worked
on as they arrive, like answers that are too long, by threads that do nothing else.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from typing import Any

from waitress import wasyncore
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

from moorage.http import health_pages
from moorage.http.auth import Wsgi
from moorage.http.channel import ClientChannel

MOST_CONNECTIONS = 500
"""One more, and the one that has kept us waiting longest is closed."""
IDLE_SECONDS = 120
"""After which a connection that is not used is closed."""
_LOOK_SECONDS = 1
_RECEIVED_AT_ONCE = 64 * 1024
_STREAMS = 8
"""Bodies and answers of any length that are worked on at the same time; others wait."""
_LAST_ANSWERS_SECONDS = 2.0
_SPARE_BODY = 1024 * 1024
"""A body that is a little too large is read, and refused in the API's words; a larger one is not read."""
_ASIDE = frozenset({*health_pages.PATHS, "/metrics"})
"""Have threads of their own: whoever watches us wants to know most when all others are busy."""


class HttpServer:
    """Listens from the beginning; raises OSError if it can't."""

    def __init__(
        self,
        listen: str,
        port: int,
        application: Wsgi,
        *,
        threads: int,
        longest_body: int,
        streamed: re.Pattern[str] | None = None,
    ) -> None:
        """`streamed` says of which requests ("METHOD path") body or answer are of any length."""
        host = f"[{listen}]" if ":" in listen else listen
        self._map: dict[int, Any] = {}
        self._server = _Server(
            application,
            streamed=streamed,
            map=self._map,
            listen=f"{host}:{port}",
            threads=threads,
            connection_limit=10 * MOST_CONNECTIONS,  # ours comes first
            cleanup_interval=_LOOK_SECONDS,
            channel_timeout=IDLE_SECONDS,
            max_request_body_size=longest_body + _SPARE_BODY,
            asyncore_use_poll=True,
            recv_bytes=_RECEIVED_AT_ONCE,
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


class _Server(TcpWSGIServer):  # type: ignore[misc]
    channel_class = ClientChannel

    def __init__(self, *args: Any, streamed: re.Pattern[str] | None, **options: Any) -> None:
        self.streamed = streamed
        self._aside = ThreadedTaskDispatcher()
        self._aside.set_thread_count(2)
        self._streams = ThreadedTaskDispatcher()
        self._streams.set_thread_count(0 if streamed is None else _STREAMS)
        super().__init__(*args, **options)

    def add_task(self, task: ClientChannel) -> None:
        request = task.requests[0]
        if request.path in _ASIDE:
            self._aside.add_task(task)
        elif self.streamed is not None and self.streamed.fullmatch(f"{request.command} {request.path}"):
            self._streams.add_task(task)
        else:
            self.task_dispatcher.add_task(task)

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
        self._streams.set_thread_count(0)

    @property
    def has_answers(self) -> bool:
        return any(channel.total_outbufs_len for channel in list(self.active_channels.values()))
