"""Clients that keep their connections, and send what must not be done twice: none of it may be lost."""

from __future__ import annotations

import http.client
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


@dataclass
class Sent:
    """What became of requests: by status, and of those that got no answer, by reason."""

    answers: Counter[int] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    """Of answers that are a refusal."""

    @property
    def failed(self) -> int:
        return len(self.lost) + sum(count for status, count in self.answers.items() if status >= 400)


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class KeepAliveClients:
    """So many requests a second until the end of `with`. Each client keeps its one connection for as long as
    the other side lets it, then goes to the next address; it sends nothing twice."""

    def __init__(
        self,
        urls: Sequence[str],
        request: Callable[[int], Request],
        *,
        clients: int = 4,
        per_second: float = 50,
        heard: Callable[[Request, int, bytes], None] = lambda request, status, body: None,
    ) -> None:
        """`heard` is told of each answer, by one client at a time."""
        self._heard = heard
        self._addresses = [urlsplit(url) for url in urls]
        self._request = request
        self._pause = clients / per_second
        self._serial = itertools.count()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.sent = Sent()
        self._threads = [threading.Thread(target=self._run, args=(at,), daemon=True) for at in range(clients)]

    def _run(self, at: int) -> None:
        connection: http.client.HTTPConnection | None = None
        due = time.monotonic()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            due = max(due + self._pause, time.monotonic())
            request = self._request(next(self._serial))
            try:
                if connection is None:
                    at, connection = self._connect(at)
                connection.request(request.method, request.path, request.body, dict(request.headers))
                answer = connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection = None
                with self._lock:
                    self.sent.lost.append(f"{request.method} {request.path}: {type(error).__name__}: {error}")
                continue
            if answer.will_close:
                connection, at = None, at + 1
            with self._lock:
                self.sent.answers[answer.status] += 1
                self._heard(request, answer.status, body)
                if answer.status >= 400:
                    self.sent.bodies.append(f"{answer.status} {body[:300]!r}")

    def _connect(self, at: int) -> tuple[int, http.client.HTTPConnection]:
        """Whoever is not there was not asked for anything, so another one may be."""
        for tried in range(at, at + len(self._addresses)):
            address = self._addresses[tried % len(self._addresses)]
            connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=30)
            with suppress(ConnectionRefusedError):
                connection.connect()
                return tried, connection
        raise ConnectionRefusedError("nobody is there")

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(60)
