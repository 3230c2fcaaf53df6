"""How many requests a process works on at the same time.

A server may have many more threads than that: one that waits for the rest of a body costs nearly nothing, as
long as it keeps nobody from working. So it gives its turn back while it waits.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from moorage.http.auth import StartResponse, Wsgi
from moorage.http.caller import Environ

_KEY = "moorage.turns"


class ConcurrencyLimit:
    def __init__(self, inner: Wsgi, count: int) -> None:
        self._inner = inner
        self._free = threading.Semaphore(count)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        environ[_KEY] = self
        with self._free:
            return self._inner(environ, start_response)

    @contextmanager
    def given_back(self) -> Iterator[None]:
        self._free.release()
        try:
            yield
        finally:
            self._free.acquire()


@contextmanager
def waiting(environ: Environ) -> Iterator[None]:
    """While a request waits for its client, others may have its turn."""
    turns: ConcurrencyLimit | None = environ.get(_KEY)
    if turns is None:
        yield
        return
    with turns.given_back():
        yield
