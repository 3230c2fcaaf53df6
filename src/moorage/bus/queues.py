"""The names of the bus's queues, which are the keys that messages are routed by.

Broker permissions go by these names (`permissions.py`): what an agent may use has its host's name in it, at
the end, so that no host's name is the beginning of another one's.
"""

from __future__ import annotations

from typing import NamedTuple

from moorage.core import uuids

PRIORITY = "info"
"""oslo.messaging ends the names of notifications' queues with it."""


class QueueNames(NamedTuple):
    """Queues of one broker share their names, whatever the exchange: so they begin with its name."""

    exchange: str

    @property
    def conductors(self) -> str:
        """All conductors draw from it."""
        return self._named("conductors")

    def agent(self, host: str) -> str:
        """A host's tasks wait here, even if it is away."""
        return self._named(f"agent.{host}")

    def questions(self, host: str) -> str:
        """Only there as long as the host's agent listens."""
        return self._named(f"questions.{host}")

    def answers(self, asker: str) -> str:
        """Only there as long as the asker waits for answers; `asker` is what `new_asker` made."""
        return self._named(f"answers.{asker}")

    def is_fleeting(self, queue: str) -> bool:
        """Whether a queue goes when nobody listens any more."""
        return queue.startswith((f"{self.exchange}.questions.", f"{self.exchange}.answers."))

    def _named(self, queue: str) -> str:
        return f"{self.exchange}.{queue}.{PRIORITY}"


def new_asker() -> str:
    return uuids.generate().replace("-", "")


def topic(queue: str) -> str:
    """What oslo.messaging wants to hear, to make that name of it."""
    return queue.removesuffix(f".{PRIORITY}")
