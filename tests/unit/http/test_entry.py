"""The outermost layer, with whatever a caller may send as method and path."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import pytest
from falcon.testing import create_environ
from prometheus_client import generate_latest

from moorage.http.auth import StartResponse
from moorage.http.caller import Environ
from moorage.http.entry import EntryMiddleware


def inner(_environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    start_response("404 Not Found", [])
    return []


def send(method: str, path: str) -> None:
    environ = {**create_environ(), "REQUEST_METHOD": method, "PATH_INFO": path}
    EntryMiddleware(inner, "tested", [])(environ, lambda *_: None)


def test_invented_methods_do_not_make_metrics_of_their_own() -> None:
    for number in range(3):
        send(f"INVENTED{number}", "/")
    text = generate_latest().decode()
    assert "INVENTED" not in text
    assert 'moorage_http_requests_total{method="other",service="tested",status="404"} 3.0' in text


def test_a_line_break_in_the_path_makes_no_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        send("GET", "/a\nFAKE é".encode().decode("latin-1"))
    assert '"GET /a%0AFAKE%20%C3%A9"' in caplog.messages[0]
    assert "\n" not in caplog.messages[0]
