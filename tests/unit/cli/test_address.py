from __future__ import annotations

import pytest

from moorage.cli import address


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_is_reachable_from_this_machine_only(host: str) -> None:
    assert address.is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_any_other_address_is_not(host: str) -> None:
    assert not address.is_loopback(host)


def test_an_ipv6_address_is_bracketed_in_a_url() -> None:
    assert address.url("::1", 8778) == "http://[::1]:8778"
    assert address.url("127.0.0.1", 8778) == "http://127.0.0.1:8778"
