"""Spans sent to an OpenTelemetry collector, in the background: what nobody takes is dropped."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags

from moorage.core import tracing
from moorage.core.context import WorkContext

_NANOSECONDS = 1_000_000_000
_ATTRIBUTES = {
    "project_id": "openstack.project.id",
    "user_id": "openstack.user.id",
    "server": "openstack.server.id",
    "host": "openstack.host",
    "operation": "moorage.operation",
}


class _ChosenIds(RandomIdGenerator):
    """For the span of a request, whose ids every process works out by itself."""

    def __init__(self) -> None:
        self._chosen = threading.local()

    @contextmanager
    def choosing(self, work: WorkContext) -> Iterator[None]:
        self._chosen.work = work
        try:
            yield
        finally:
            self._chosen.work = None

    def generate_trace_id(self) -> int:
        work = getattr(self._chosen, "work", None)
        return super().generate_trace_id() if work is None else tracing.trace_id(work)

    def generate_span_id(self) -> int:
        work = getattr(self._chosen, "work", None)
        return super().generate_span_id() if work is None else tracing.request_span_id(work)


class OpenTelemetry:
    def __init__(self, endpoint: str, sample: float, service: str) -> None:
        self._ids = _ChosenIds()
        provider = TracerProvider(
            sampler=TraceIdRatioBased(sample),  # by the trace's id, so that all processes choose the same
            resource=Resource.create({"service.name": service}),
            id_generator=self._ids,
        )
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
        provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = provider.get_tracer("moorage")

    def send(
        self, name: str, work: WorkContext, seconds: float, error: str | None, *, is_request: bool
    ) -> None:
        ended = time.time_ns()
        begun = ended - int(seconds * _NANOSECONDS)
        told = {_ATTRIBUTES[field]: value for field, value in _known(work).items() if field in _ATTRIBUTES}
        if is_request:
            with self._ids.choosing(work):
                span = self._tracer.start_span(name, Context(), SpanKind.SERVER, told, start_time=begun)
        else:
            below = SpanContext(
                tracing.trace_id(work),
                tracing.request_span_id(work),
                is_remote=True,
                trace_flags=TraceFlags(TraceFlags.SAMPLED),
            )
            parent = trace.set_span_in_context(NonRecordingSpan(below), Context())
            span = self._tracer.start_span(name, parent, SpanKind.INTERNAL, told, start_time=begun)
        if error is not None:
            span.set_status(StatusCode.ERROR, error)
        span.end(ended)


def _known(work: WorkContext) -> dict[str, str]:
    return {name: value for name, value in msgspec.structs.asdict(work).items() if value}
