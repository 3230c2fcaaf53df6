"""The calls that are at work on a driver's servers, so that others can cut them short."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from moorage.drivers.contract import DriverClosedError, DriverError


class Interruption(StrEnum):
    DESTROYED = "the server was destroyed meanwhile"
    ABORTED = "the live migration was aborted"
    HURRIED = "hurried"
    """Not an end: whatever the call waits for, it shall wait no longer."""


class DriverCall:
    """One call at work on a server."""

    def __init__(self, step: str) -> None:
        self.step = step
        self.interruption: Interruption | None = None
        self._event = threading.Event()

    def interrupt(self, interruption: Interruption | None) -> None:
        if self.interruption is None or self.hurried:
            self.interruption = interruption or self.interruption
        self._event.set()

    def wait(self, seconds: float) -> None:
        self._event.wait(seconds)

    @property
    def hurried(self) -> bool:
        return self.interruption is Interruption.HURRIED


class Calls:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work: dict[str, set[DriverCall]] = {}
        self._closed = False

    @contextmanager
    def begin(self, server_uuid: str, step: str) -> Iterator[DriverCall]:
        call = DriverCall(step)
        with self._lock:
            if self._closed:
                raise DriverClosedError
            self._at_work.setdefault(server_uuid, set()).add(call)
        try:
            yield call
        finally:
            with self._lock:
                calls = self._at_work[server_uuid]
                calls.discard(call)
                if not calls:
                    del self._at_work[server_uuid]

    def interrupt(self, server_uuid: str, interruption: Interruption, step: str | None = None) -> None:
        """Cut short what is at work on a server: all of it, or only calls of one kind."""
        with self._lock:
            for call in self._at_work.get(server_uuid, ()):
                if step is None or call.step == step:
                    call.interrupt(interruption)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for calls in self._at_work.values():
                for call in calls:
                    call.interrupt(None)

    def check(self, call: DriverCall) -> None:
        """Whether the call may still change anything."""
        if self._closed:
            raise DriverClosedError
        if call.interruption is not None and not call.hurried:
            raise DriverError(call.interruption.value)
