"""Whose work a thread does: log lines, requests to other services and operations that follow say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

import msgspec

_HEADER = "X-OpenStack-Request-Id"
"""By which every service of OpenStack takes up the id that its caller goes by."""


class WorkContext(msgspec.Struct, frozen=True):
    """What is not known is empty."""

    request_id: str = ""
    """Ours, as the answer told it."""
    global_request_id: str = ""
    """The caller's own, which several services may have heard of."""
    user_id: str = ""
    project_id: str = ""
    server: str = ""
    host: str = ""
    operation: str = ""
    """Its kind, number and attempt."""

    @property
    def request_ids(self) -> str:
        return f"{self.global_request_id} {self.request_id}".strip()

    def of_request(self, request_ids: str) -> WorkContext:
        """The same for a request whose ids were written down."""
        given, _, own = request_ids.rpartition(" ")
        return msgspec.structs.replace(self, request_id=own, global_request_id=given)


NOBODY = WorkContext()
_NONE: Mapping[str, WorkContext] = MappingProxyType({})
_CURRENT: ContextVar[WorkContext] = ContextVar("work", default=NOBODY)
_TOGETHER: ContextVar[Mapping[str, WorkContext]] = ContextVar("works", default=_NONE)


def current() -> WorkContext:
    return _CURRENT.get()


@contextmanager
def working(context: WorkContext) -> Iterator[None]:
    token = _CURRENT.set(context)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def working_together(contexts: Mapping[str, WorkContext]) -> Iterator[None]:
    """By server. What is done for one of them is that one's (`about`), what is done for all is nobody's."""
    token = _TOGETHER.set(contexts)
    alone = next(iter(contexts.values())) if len(contexts) == 1 else NOBODY
    try:
        with working(alone):
            yield
    finally:
        _TOGETHER.reset(token)


def about(server: str) -> WorkContext:
    """Of one of those that are worked on together."""
    return _TOGETHER.get().get(server) or msgspec.structs.replace(current(), server=server)


def learn(**more: str) -> None:
    """Who asks, and for what, turns out when the work is under way already."""
    _CURRENT.set(msgspec.structs.replace(current(), **more))


def request_headers() -> dict[str, str]:
    """For a request to another service: it logs the id by which ours was asked."""
    context = current()
    known = context.global_request_id or context.request_id
    return {_HEADER: known} if known else {}
