"""What proxies say of a request is believed as far as they are the operator's, and if it makes sense."""

from __future__ import annotations

import pytest

from moorage.http import forwarded
from moorage.http.forwarded import Forwarded

NOTHING = Forwarded(None, None, None, None)


def read(proxies: int = 1, /, **headers: str) -> Forwarded:
    given = {name.replace("_", "-").lower(): value for name, value in headers.items()}
    return forwarded.read(lambda name: given.get(name.lower()), proxies)


def test_what_a_proxy_says() -> None:
    told = read(
        x_forwarded_proto="https",
        x_forwarded_host="cloud.example.com:8443",
        x_forwarded_prefix="/compute/",
        x_forwarded_for="192.0.2.7",
    )
    assert told == Forwarded("https", "cloud.example.com:8443", "/compute", "192.0.2.7")


def test_what_it_says_in_the_standards_words() -> None:
    told = read(
        forwarded='for="[2001:db8::7]:4711";proto=https;host="cloud.example.com"', x_forwarded_host="other"
    )
    assert told == Forwarded("https", "cloud.example.com", None, "2001:db8::7")


def test_what_the_client_wrote_itself_is_not_believed() -> None:
    assert read(x_forwarded_for="10.0.0.1, 192.0.2.7").client == "192.0.2.7"
    assert read(x_forwarded_host="evil.example.com, cloud.example.com").host == "cloud.example.com"
    assert read(forwarded="for=10.0.0.1;host=evil, for=192.0.2.7;host=cloud.example.com") == Forwarded(
        None, "cloud.example.com", None, "192.0.2.7"
    )


def test_of_two_proxies_the_outer_one_saw_the_client() -> None:
    assert read(2, x_forwarded_for="10.0.0.1, 192.0.2.7, 10.1.1.1").client == "192.0.2.7"
    assert read(2, x_forwarded_for="192.0.2.7").client == "192.0.2.7"


@pytest.mark.parametrize(
    "headers",
    [
        {"x_forwarded_proto": "gopher"},
        {"x_forwarded_host": "cloud.example.com/path"},
        {"x_forwarded_host": "user@cloud.example.com"},
        {"x_forwarded_host": 'a"b'},
        {"x_forwarded_prefix": "compute"},
        {"x_forwarded_prefix": "//other.example.com"},
        {"x_forwarded_prefix": "/a/../b c"},
        {"x_forwarded_for": "unknown"},
        {"x_forwarded_for": ""},
        {"forwarded": "for=_hidden;proto=;host="},
        {"forwarded": '"'},
        {"forwarded": ","},
        {},
    ],
)
def test_what_makes_no_sense_is_as_if_unsaid(headers: dict[str, str]) -> None:
    assert read(**headers) == NOTHING


@pytest.mark.parametrize(
    ("listed", "client"),
    [("192.0.2.7:4711", "192.0.2.7"), ("2001:db8::7", "2001:db8::7"), ("[2001:db8::7]", "2001:db8::7")],
)
def test_addresses_of_clients(listed: str, client: str) -> None:
    assert read(x_forwarded_for=listed).client == client
