"""Which address links begin with."""

from __future__ import annotations

from typing import Any
from wsgiref.util import application_uri, setup_testing_defaults

import pytest

from moorage.core import config
from moorage.core.config import ConfigError
from moorage.http import public_address
from moorage.http.options import OPTIONS

PARSING: dict[str, object] = {"oslo_middleware.enable_proxy_headers_parsing": True}
SAID = {
    "HTTP_X_FORWARDED_PROTO": "https",
    "HTTP_X_FORWARDED_HOST": "cloud.example.com",
    "HTTP_X_FORWARDED_PREFIX": "/compute",
    "HTTP_X_FORWARDED_FOR": "192.0.2.7",
}


def seen(
    options: dict[str, object], endpoint: str | None = None, said: dict[str, str] = SAID
) -> tuple[str, str]:
    """The address of the application, and of the client, as the application sees them."""
    told: list[tuple[str, str]] = []

    def application(environ: dict[str, Any], _start: object) -> list[bytes]:
        told.append((application_uri(environ), environ["REMOTE_ADDR"]))
        return []

    environ: dict[str, Any] = {"HTTP_HOST": "10.0.0.5:8774", "REMOTE_ADDR": "10.0.0.1", **said}
    setup_testing_defaults(environ)
    environ["SCRIPT_NAME"] = ""
    public_address.middleware(config.read([], [OPTIONS], options), application, endpoint)(
        environ, lambda *_: None
    )
    return told[0]


def test_nobody_is_believed_unless_the_operator_says_so() -> None:
    assert seen({}) == ("http://10.0.0.5:8774/", "10.0.0.1")


def test_the_proxy_is_believed_if_the_operator_says_so() -> None:
    assert seen(PARSING) == ("https://cloud.example.com/compute", "192.0.2.7")
    assert seen(PARSING, said={}) == ("http://10.0.0.5:8774/", "10.0.0.1")


def test_the_operators_own_word_comes_first() -> None:
    assert seen({}, "https://api.example.org/c/")[0] == "https://api.example.org/c"
    assert seen(PARSING, "https://api.example.org") == ("https://api.example.org/", "192.0.2.7")


@pytest.mark.parametrize("endpoint", ["cloud.example.com", "ftp://cloud", "https://", "https://cloud/?a=b"])
def test_what_is_no_address_is_refused(endpoint: str) -> None:
    with pytest.raises(ConfigError, match="public_endpoint"):
        seen({}, endpoint)
