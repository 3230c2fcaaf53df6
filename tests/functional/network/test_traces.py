"""A boot as a trace: what an OpenTelemetry collector gets of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from moorage.core import tracing
from moorage.core.context import WorkContext
from tests.functional.network.asking import boot
from tests.support.closing_server import ClosingHTTPServer
from tests.support.crossing import Crossing
from tests.support.processes import wait_until

GLOBAL = "req-11111111-2222-4333-8444-555555555555"


class Collector:
    """Takes OTLP over HTTP, as a real one does."""

    def __init__(self) -> None:
        self.spans: list[Any] = []

    def take(self, body: bytes) -> None:
        told = ExportTraceServiceRequest.FromString(body)
        for resource in told.resource_spans:
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


@pytest.fixture
def collector() -> Iterator[tuple[Collector, str]]:
    made = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            made.take(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ClosingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def attributes(span: Any) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in span.attributes}


def test_a_boot_is_one_trace_with_a_span_for_each_step(
    crossing: Callable[..., Crossing], collector: tuple[Collector, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    kept, endpoint = collector
    cloud = crossing(**{"tracing.endpoint": endpoint})
    tracing.set_up(cloud.conf, "moorage-test")
    try:
        cloud.start_conductor()
        cloud.start_agent("one")
        uuid, _ = boot(cloud, {"X-OpenStack-Request-Id": GLOBAL})
        assert cloud.settled(uuid)["status"] == "ACTIVE"
        wait_until(
            lambda: bool(kept.named("build: plugged") or kept.named("build: spawned")), "the last span", 20
        )
    finally:
        cloud.conf.set_override("endpoint", None, "tracing")
        tracing.set_up(cloud.conf, "moorage-test")
    (asked,) = kept.named("compute: POST /servers")
    trace = bytes.fromhex(GLOBAL.removeprefix("req-").replace("-", ""))
    assert asked.trace_id == trace
    steps = [span for span in kept.spans if span.name.startswith("build: ")]
    (spawned,) = kept.named("agent: spawn")
    assert len(steps) > 3
    for span in (*steps, spawned):
        assert (span.trace_id, span.parent_span_id) == (trace, asked.span_id), span.name
        assert attributes(span)["openstack.server.id"] == uuid
        assert span.end_time_unix_nano >= span.start_time_unix_nano
    assert attributes(spawned)["openstack.host"] == "one"


def test_whatever_a_caller_takes_for_an_id_names_a_trace() -> None:
    zero = WorkContext("req-00000000-0000-0000-0000-000000000000")
    odd = WorkContext("req-1", "req-------------------------------------")
    for work in (zero, odd):
        assert 0 < tracing.trace_id(work) < 2**128
        assert 0 < tracing.request_span_id(work) < 2**64
