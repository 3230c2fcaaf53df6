"""What the user of a host's agent may do on RabbitMQ, and no more: hear its tasks and questions, and answer.

It may neither read, purge or delete what is others', nor make or remove exchanges, nor send to anybody but
conductors and askers. That a message is a host's own is shown by its seal (`seals.py`), not here.
"""

from __future__ import annotations

import re

import msgspec

from moorage.bus.queues import QueueNames

_ASKER = "[0-9a-f]{32}"


class AgentPermissions(msgspec.Struct, frozen=True):
    """Regular expressions, as `rabbitmqctl set_permissions` and `set_topic_permissions` take them."""

    exchange: str
    configure: str
    write: str
    read: str
    topic_write: str
    """Keys that it may publish with: those of conductors, and of whoever asks."""
    topic_read: str
    """Keys that it may bind queues with: its own."""


def of_agent(exchange: str, host: str) -> AgentPermissions:
    names = QueueNames(exchange)
    own = "|".join(_literal(name) for name in (names.agent(host), names.questions(host)))
    answers = _literal(names.answers("@")).replace("@", _ASKER)
    return AgentPermissions(
        exchange=exchange,
        configure=f"^({own})$",
        write=f"^({_literal(exchange)}|{own})$",
        read=f"^({_literal(exchange)}|{own})$",
        topic_write=f"^({_literal(names.conductors)}|{answers})$",
        topic_read=f"^({own})$",
    )


def _literal(name: str) -> str:
    """As Erlang's `re` understands it, too: only what has a meaning there is escaped."""
    return re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", name)
