"""The body of a request that is worked on while it arrives: a bounded buffer between the loop that reads the
connection and the thread that works on the request."""

from __future__ import annotations

import threading
from collections.abc import Callable

_MOST_BYTES = 1024 * 1024


class Inflow:
    """Takes the place of waitress's buffer for a body."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called when there is room again."""
        self._wake = wake
        self._data = bytearray()
        self._changed = threading.Condition()
        self._whole = False
        self._broken = False
        self._unwanted = False

    # ------------------------------------------------------------ the loop's side

    def append(self, data: bytes) -> None:
        with self._changed:
            if not self._unwanted:
                self._data += data
                self._changed.notify_all()

    def end(self, *, whole: bool) -> None:
        """Nothing comes any more."""
        with self._changed:
            self._whole = self._whole or whole
            self._broken = not self._whole
            self._changed.notify_all()

    @property
    def is_full(self) -> bool:
        return len(self._data) >= _MOST_BYTES

    @property
    def is_unwanted(self) -> bool:
        return self._unwanted

    def __len__(self) -> int:
        return len(self._data)

    def getfile(self) -> Inflow:
        return self

    def close(self) -> None:
        """The request was answered: what still comes of its body is dropped."""
        with self._changed:
            self._unwanted = True
            self._data.clear()
        self._wake()

    # ------------------------------------------------------------ the thread's side

    def read(self, most: int = -1) -> bytes:
        """Waits for the first part; OSError if the client hung up."""
        with self._changed:
            self._changed.wait_for(lambda: self._data or self._whole or self._broken)
            if not self._data and not self._whole:
                raise ConnectionResetError("the client hung up")
            count = len(self._data) if most < 0 else most
            was_full = self.is_full
            taken = bytes(self._data[:count])
            del self._data[:count]
        if was_full:
            self._wake()
        return taken
