"""A server of oslo.messaging that connects in a thread of its own: RabbitMQ may be away for long when we
start.

It may also refuse, as when a queue is there but of another type, or its exchange is not there yet: then we
try until that is mended. A listener that is there for older releases only does without if it may not listen.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from prometheus_client import Counter

LOG = logging.getLogger(__name__)
LISTEN_FAILURES = Counter("moorage_bus_listen_failures_total", "Times that RabbitMQ refused a listener.")
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0
_ACCESS_REFUSED = 403


class Listener:
    def __init__(self, topic: str, make: Callable[[], Any], *, dispensable: bool = False) -> None:
        self._topic = topic
        self._dispensable = dispensable
        self._make = make
        self._lock = threading.Lock()
        self._server: Any = None
        self._closed = threading.Event()
        self._listens = threading.Event()
        threading.Thread(target=self._start, name="bus", daemon=True).start()

    def _start(self) -> None:
        pause = _FIRST_PAUSE
        while not self._closed.is_set():
            server = self._make()
            try:
                server.start()
            except Exception as error:
                if self._dispensable and _is_forbidden(error):
                    LOG.info("nobody listens to %s: our user of RabbitMQ may not", self._topic)
                    return
                LISTEN_FAILURES.inc()
                LOG.error("can't listen to %s, next try in %.0f s: %s", self._topic, pause, error)
                self._closed.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                with self._lock:
                    self._server = server
                self._listens.set()
                return

    def listens_within(self, seconds: float) -> bool:
        return self._listens.wait(seconds)

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.stop()
            server.wait()


def _is_forbidden(error: BaseException | None) -> bool:
    """oslo.messaging says it in words; what RabbitMQ said is behind that."""
    while error is not None:
        if getattr(error, "reply_code", None) == _ACCESS_REFUSED:
            return True
        error = error.__cause__ or error.__context__
    return False
