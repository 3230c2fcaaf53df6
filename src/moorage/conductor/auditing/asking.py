"""What the driver of a host has, asked of its agent: an audit's question, which changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moorage.bus.contract import AskingSide, HeldMachine, NoAnswerError, Question, QuestionKind, Refusal
from moorage.conductor.auditing.contract import CheckFailedError

_SECONDS = 20.0


class Holdings(msgspec.Struct, frozen=True):
    """What an agent answers."""

    servers: dict[str, int] = {}
    """Power states, by server."""
    machines: list[HeldMachine] = []


def holdings(agents: AskingSide, host: str, only: Sequence[str] = ()) -> Holdings:
    """Of these servers, or of all."""
    try:
        answer = agents.ask(host, Question("", "", QuestionKind.HOLDINGS, {"only": list(only)}), _SECONDS)
    except NoAnswerError as error:
        raise CheckFailedError(f"host {host} does not answer: {error}") from error
    if answer.refusal is not None:
        older = " (its agent is older than this)" if answer.refusal is Refusal.UNSUPPORTED else ""
        raise CheckFailedError(f"host {host} does not tell what it has{older}: {answer.error}")
    return msgspec.convert(answer.facts, Holdings)
