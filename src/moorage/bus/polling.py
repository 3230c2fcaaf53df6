"""Batches without spinning: the first message is waited for at length, and only its companions briefly.

By itself oslo.messaging looks every `batch_timeout` whether a batch has come together, even in an idle queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_FIRST_MESSAGE_SECONDS = 1.0
"""Acknowledgements are sent between two looks; so after a busy time the looks of oslo.messaging grow longer
from a millisecond up to this."""


def block_on_first_message(server: Any) -> Any:
    """Make a server of oslo.messaging, not yet started, wait like that."""
    create: Callable[[], Any] = server._create_listener

    def create_blocking() -> Any:
        listener = create()
        listener._poll_style_listener = _BlockingPoller(listener._poll_style_listener)
        return listener

    server._create_listener = create_blocking
    return server


class _BlockingPoller:
    """Polls as a listener of oslo.messaging does, which it otherwise is."""

    def __init__(self, listener: Any) -> None:
        self._listener = listener

    def poll(self, batch_size: int, batch_timeout: float) -> list[Any]:
        found: list[Any] = self._listener.poll(timeout=_FIRST_MESSAGE_SECONDS)
        if found and batch_size > 1:
            found += self._listener.poll(batch_size=batch_size - 1, batch_timeout=batch_timeout)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listener, name)
