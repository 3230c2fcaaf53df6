"""What the proxy is told about TLS to hosts: files that can be used, names, and who need not speak it."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from moorage.cli import settings
from moorage.compute.consoles.tokens import ConsoleGrant
from moorage.consoles.guest_tls import GuestTls
from moorage.consoles.settings import ConsoleSettings
from moorage.core.config import ConfigError
from moorage.drivers.parts import ConsoleAddress, ConsoleType
from tests.support.certificates import Authority

GRANT = ConsoleGrant(1, "s", "hyper-1", "n", ConsoleType.NOVNC, ConsoleAddress("10.0.0.11", 5900), "http://p")


def read(**options: object) -> GuestTls | None:
    given = {f"consoles.{name}": value for name, value in options.items()}
    return ConsoleSettings.from_conf(settings.read(None, given)).guest_tls


def test_without_an_authority_there_is_no_tls_and_the_rest_means_nothing(tmp_path: Path) -> None:
    assert read() is None
    for lonely in ({"guest_cert": "x"}, {"guest_key": "x"}, {"plain_hosts": ["x"]}):
        with pytest.raises(ConfigError, match="has no guest_ca"):
            read(**lonely)
    ca = Authority(tmp_path).cert
    with pytest.raises(ConfigError, match="has no guest_cert"):
        read(guest_ca=str(ca), guest_key="x")


def test_files_that_are_of_no_use_are_told_at_the_start(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair, other = authority.sign("proxy"), authority.sign("other")
    ca = str(authority.cert)
    for options, told in (
        ({"guest_ca": str(tmp_path / "none")}, "guest_ca .*none can't be used"),
        ({"guest_ca": str(pair.key)}, "guest_ca .* can't be used"),
        ({"guest_ca": ca, "guest_cert": str(pair.cert)}, "guest_cert .* can't be used"),
        ({"guest_ca": ca, "guest_cert": str(pair.cert), "guest_key": str(other.key)}, "can't be used"),
    ):
        with pytest.raises(ConfigError, match=told):
            read(**options)
    assert read(guest_ca=ca, guest_cert=str(pair.cert), guest_key=str(pair.key)) is not None
    assert read(guest_ca=ca, guest_cert=str(pair.both)) is not None, "the key may be in the same file"


def test_hosts_have_to_prove_their_name_whatever_is_set(tmp_path: Path) -> None:
    ca = str(Authority(tmp_path).cert)
    by_name, by_address = read(guest_ca=ca), read(guest_ca=ca, guest_name="address")
    assert by_name is not None
    assert by_address is not None
    assert by_name.name(GRANT) == "hyper-1"
    assert by_address.name(GRANT) == "10.0.0.11"
    context = by_name.context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert not context.hostname_checks_common_name
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_hosts_that_need_not_speak_it_are_named(tmp_path: Path) -> None:
    tls = read(guest_ca=str(Authority(tmp_path).cert), plain_hosts=["ironic-*", "old"])
    assert tls is not None
    assert [tls.may_be_plain(host) for host in ("ironic-1", "old", "older", "hyper-1")] == [
        True,
        True,
        False,
        False,
    ]
    strict = read(guest_ca=str(tls.ca))
    assert strict is not None
    assert not strict.may_be_plain("ironic-1")
