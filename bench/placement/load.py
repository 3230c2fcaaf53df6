"""A closed-loop load client: N connections, each sends its next request when its last is answered.

One thread and a selector instead of N threads, so that the client costs little of the machine that
it shares with what it measures.
"""

from __future__ import annotations

import collections
import json
import selectors
import socket
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Job = list[bytes]
"""Requests that belong together and are sent one after the other, e.g. all that reports one node."""

Meter = Callable[[], float]
"""Reads the processor time that the measured processes have used so far."""


@dataclass
class Outcome:
    """What a load run saw: how long each job took, and every status that came back."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Processor time that the measured processes used meanwhile, if there was a meter."""
    job_seconds: list[float] = field(default_factory=list)
    statuses: collections.Counter[int] = field(default_factory=collections.Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def jobs(self) -> int:
        return len(self.job_seconds)

    @property
    def requests(self) -> int:
        return self.statuses.total()

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds

    @property
    def median_ms(self) -> float:
        return statistics.median(self.job_seconds) * 1000

    @property
    def p99_ms(self) -> float:
        return statistics.quantiles(self.job_seconds, n=100)[98] * 1000 if self.jobs > 1 else self.median_ms

    @property
    def succeeded(self) -> int:
        return sum(count for status, count in self.statuses.items() if status < 300)


def message(
    method: str, path: str, body: Any = None, version: str = "1.39", headers: Mapping[str, str] | None = None
) -> bytes:
    """The bytes of one request, made ahead of time so that encoding is not measured."""
    content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "X-Auth-Token: admin",
        f"OpenStack-API-Version: placement {version}",
        "Accept: application/json",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    if content:
        lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
    return "\r\n".join([*lines, "", ""]).encode() + content


class _Client:
    """One connection and the job that it is at."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self._expected = -1
        self._todo: Iterator[bytes] = iter(())
        self.began = 0.0

    def begin(self, job: Job) -> None:
        self._todo = iter(job)
        self.began = time.perf_counter()
        self.send_next()

    def send_next(self) -> bool:
        """False when the job has no request left."""
        request = next(self._todo, None)
        if request is None:
            return False
        self.socket.sendall(request)
        return True

    def receive(self) -> tuple[int, bytes] | None:
        """Status and body, once they are complete."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the server closed a connection under load")
        self._received += data
        if self._expected < 0:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return None
            self._expected = end + 4 + _content_length(bytes(self._received[:end]))
        if len(self._received) < self._expected:
            return None
        answer = bytes(self._received)
        self._received.clear()
        self._expected = -1
        return int(answer[9:12]), answer[answer.find(b"\r\n\r\n") + 4 :]


def run(
    port: int,
    jobs: Iterable[Job],
    clients: int,
    seconds: float = float("inf"),
    meter: Meter = lambda: 0.0,
) -> Outcome:
    """Work through `jobs` with `clients` connections; no job is begun after `seconds`."""
    outcome, queue, waiting = Outcome(), iter(jobs), 0
    selector = selectors.DefaultSelector()
    began, metered = time.perf_counter(), meter()
    for _ in range(clients):
        job = next(queue, None)
        if job is None:
            break
        client = _Client(port)
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.begin(job)
        waiting += 1
    while waiting:
        for key, _ in selector.select():
            client = key.data
            answer = client.receive()
            if answer is None:
                continue
            _note(outcome, *answer)
            if client.send_next():
                continue
            now = time.perf_counter()
            outcome.job_seconds.append(now - client.began)
            job = next(queue, None) if now - began < seconds else None
            if job is not None:
                client.begin(job)
                continue
            waiting -= 1
            selector.unregister(client.socket)
            client.socket.close()
    outcome.seconds = time.perf_counter() - began
    outcome.cpu_seconds = meter() - metered
    return outcome


def _note(outcome: Outcome, status: int, body: bytes) -> None:
    outcome.statuses[status] += 1
    if status >= 300 and len(outcome.failures) < 5:
        outcome.failures.append(f"{status} {body[:300].decode(errors='replace')}")


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        if line[:15].lower() == b"content-length:":
            return int(line[15:])
    return 0
