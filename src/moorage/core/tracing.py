"""Traces for OpenTelemetry, as an option: a span for each request, each step and each task of an agent.

The id of a request is that of its trace. Every process knows it already, so nothing more has to be handed
on, and a trace goes on after a crash as if nothing had happened.
"""

from __future__ import annotations

import uuid
from typing import Protocol

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.core.context import WorkContext

_HALF = (1 << 64) - 1


class Span(Protocol):
    """Something that has just ended."""

    def __call__(
        self, name: str, work: WorkContext, seconds: float, error: str | None, *, is_request: bool
    ) -> None: ...


_send: Span | None = None


def set_up(conf: cfg.ConfigOpts, service: str) -> None:
    """As `[tracing]` says; without an endpoint, nothing is recorded and nothing has to be installed."""
    global _send
    if not conf.tracing.endpoint:
        _send = None
        return
    try:
        from moorage.core.open_telemetry import OpenTelemetry
    except ImportError as error:
        raise ConfigError(f"[tracing] endpoint: {error}: install moorage[tracing]") from error
    _send = OpenTelemetry(conf.tracing.endpoint, conf.tracing.sample, service).send


def record(
    name: str, work: WorkContext, seconds: float, error: str | None = None, *, is_request: bool = False
) -> None:
    """What goes back to no request leaves no trace."""
    if _send is not None and work.request_id:
        _send(name, work, seconds, error, is_request=is_request)


def trace_id(work: WorkContext) -> int:
    """By the caller's own id, so that all that several services do for a request is one trace."""
    return _number(work.global_request_id or work.request_id)


def request_span_id(work: WorkContext) -> int:
    """What is done for a request is below its span."""
    return _number(work.request_id) & _HALF or 1


def _number(request_id: str) -> int:
    """Whatever a caller takes for an id."""
    try:
        return uuid.UUID(request_id.removeprefix("req-")).int or 1
    except ValueError:
        return uuid.uuid5(uuid.NAMESPACE_OID, request_id).int
