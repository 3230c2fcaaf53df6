"""Who waits for messages in peace still gets them in batches."""

from __future__ import annotations

from typing import Any

from moorage.bus.polling import block_on_first_message


class Listener:
    """As one of oslo.messaging: it polls for up to a batch, and notes how it was asked."""

    prefetch_size = 100

    def __init__(self, waiting: list[str]) -> None:
        self.waiting = waiting
        self.asked: list[tuple[float | None, int, float | None]] = []

    def poll(
        self, timeout: float | None = None, batch_size: int = 1, batch_timeout: float | None = None
    ) -> list[str]:
        self.asked.append((timeout, batch_size, batch_timeout))
        taken, self.waiting = self.waiting[:batch_size], self.waiting[batch_size:]
        return taken


class Adapter:
    def __init__(self, listener: Listener) -> None:
        self._poll_style_listener = listener


class Server:
    """As far as a listener is made by it."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    def _create_listener(self) -> Any:
        return Adapter(self._listener)


def patient(listener: Listener) -> Any:
    return block_on_first_message(Server(listener))._create_listener()._poll_style_listener


def test_an_idle_queue_is_looked_at_once_a_second() -> None:
    listener = Listener([])
    assert patient(listener).poll(batch_size=3, batch_timeout=0.01) == []
    assert listener.asked == [(1.0, 1, None)]


def test_what_has_come_by_the_first_message_comes_with_it() -> None:
    listener = Listener(["a", "b", "c", "d"])
    patiently = patient(listener)
    assert patiently.poll(batch_size=3, batch_timeout=0.01) == ["a", "b", "c"]
    assert listener.asked[1] == (None, 2, 0.01)
    assert patiently.poll(batch_size=1, batch_timeout=0.01) == ["d"]


def test_it_is_a_listener_otherwise() -> None:
    assert patient(Listener([])).prefetch_size == 100
