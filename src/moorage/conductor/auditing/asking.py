"""What the driver of a host has, asked of its agent: an audit's question, which changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moorage.bus.contract import AskingSide, HeldMachine, NoAnswerError, Question, QuestionKind, Refusal
from moorage.conductor.auditing.contract import CheckFailedError
from moorage.drivers.image_caching import CachedImage

_SECONDS = 20.0
_NO_SERVER = ("",)


class Holdings(msgspec.Struct, frozen=True):
    """What an agent answers."""

    servers: dict[str, int] = {}
    """Power states, by server."""
    machines: list[HeldMachine] = []
    nodes: list[str] | None = None
    """None if several hosts could own them, or if its agent is older than this."""


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


def nodes(agents: AskingSide, host: str) -> set[str] | None:
    """Those that its driver has; None if that is nothing to go by."""
    told = holdings(agents, host, _NO_SERVER).nodes
    return None if told is None else set(told)


def cached_images(agents: AskingSide, host: str) -> list[CachedImage]:
    """What its driver keeps for servers to come; nothing if its agent is too old to tell."""
    try:
        answer = agents.ask(host, Question("", "", QuestionKind.IMAGE_CACHE), _SECONDS)
    except NoAnswerError as error:
        raise CheckFailedError(f"host {host} does not answer: {error}") from error
    if answer.refusal is Refusal.UNSUPPORTED:
        return []
    if answer.refusal is not None:
        raise CheckFailedError(f"host {host} does not tell what it has: {answer.error}")
    return msgspec.convert(answer.facts["images"], list[CachedImage])
