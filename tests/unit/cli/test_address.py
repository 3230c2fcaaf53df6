from __future__ import annotations

import pytest

from moorage.cli import address
from moorage.core.config import ConfigError


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_is_reachable_from_this_machine_only(host: str) -> None:
    assert address.is_loopback(host)
    address.refuse_open_door(host, "none")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_no_authentication_is_refused_on_any_other_address(host: str) -> None:
    with pytest.raises(ConfigError, match="loopback"):
        address.refuse_open_door(host, "none")


@pytest.mark.parametrize("strategy", ["basic", "keystone"])
def test_any_address_will_do_with_authentication(strategy: str) -> None:
    address.refuse_open_door("0.0.0.0", strategy)


def test_an_ipv6_address_is_bracketed_in_a_url() -> None:
    assert address.url("::1", 8778) == "http://[::1]:8778"
    assert address.url("127.0.0.1", 8778) == "http://127.0.0.1:8778"
