"""A process that is about to end lets its clients go before it closes their connections.

Who closes a connection that is merely idle may do so just as the client sends a request on it, and the client
can't know whether that was done. So for a while `/readyz` says that the process ends, by which load balancers
take it out; requests are still answered, each with `Connection: close`, so no client sends another one there.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from typing import Any, Self

from moorage.http import health_pages
from moorage.http.auth import StartResponse, Wsgi
from moorage.http.caller import Environ

_WHERE = "MOORAGE_DRAIN_NOTICE"
_ENDING, _GENERATION = 0, 1


class DrainNotice:
    """What a parent tells its workers, however they were started: a few bytes that all of them see."""

    def __init__(self, shared: mmap.mmap) -> None:
        self._shared = shared
        self._mine = shared[_GENERATION]
        """Of this worker; those that start after a reload have the next one."""

    @classmethod
    def of_parent(cls) -> Self:
        """Made before the first worker, who finds it by the environment."""
        descriptor = os.memfd_create("moorage-drain-notice")
        os.ftruncate(descriptor, mmap.PAGESIZE)
        os.environ[_WHERE] = f"/proc/{os.getpid()}/fd/{descriptor}"
        return cls(mmap.mmap(descriptor, mmap.PAGESIZE))

    @classmethod
    def of_worker(cls) -> Self:
        """That of its parent; of a process that has none of ours, one of its own."""
        where = os.environ.get(_WHERE)
        if where is None:
            return cls(mmap.mmap(-1, mmap.PAGESIZE))
        with open(where, "r+b") as file:
            return cls(mmap.mmap(file.fileno(), mmap.PAGESIZE))

    def end(self) -> None:
        """All are about to end."""
        self._shared[_ENDING] = 1

    def replace_workers(self) -> None:
        """Those that run now are about to end; others take their places, on the same port."""
        self._shared[_GENERATION] = (self._shared[_GENERATION] + 1) % 256

    @property
    def ending(self) -> bool:
        return self._shared[_ENDING] != 0

    @property
    def last_answers(self) -> bool:
        """Whether each answer is the last one of its connection."""
        return self.ending or self._shared[_GENERATION] != self._mine


class DrainMiddleware:
    """The outermost layer of a worker whose server goes by the header `Connection` of an answer."""

    def __init__(self, inner: Wsgi, notice: DrainNotice) -> None:
        self._inner = inner
        self._notice = notice

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if not self._notice.last_answers:
            return self._inner(environ, start_response)

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            return start_response(status, [*headers, ("Connection", "close")], exc_info)

        if self._notice.ending and environ.get("PATH_INFO") == health_pages.READINESS:
            page = health_pages.ENDING
            start(page.status, [("Content-Type", page.content_type), ("Content-Length", str(len(page.body)))])
            return [page.body]
        return self._inner(environ, start)
