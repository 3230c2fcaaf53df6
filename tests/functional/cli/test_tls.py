"""TLS in our own processes: who is served, and a certificate that is renewed, well or badly."""

from __future__ import annotations

import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from moorage.cli import settings
from moorage.core.config import ConfigError
from moorage.http.tls import TlsFiles
from tests.support import moorage
from tests.support.certificates import Authority, Pair
from tests.support.processes import (
    Command,
    Service,
    free_port,
    is_alive,
    port_is_open,
    start_service,
    wait_until,
)

ADMIN = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def shown(authority: Authority) -> Pair:
    return authority.sign("placement", "127.0.0.1")


@pytest.fixture
def service(tmp_path: Path, authority: Authority, shown: Pair, sqlite_url: str) -> Iterator[Service]:
    tls = {"cert": str(shown.cert), "key": str(shown.key), "client_ca": str(authority.cert), "workers": "1"}
    config = moorage.configure(tmp_path, sqlite_url, {"placement": tls})
    moorage.sync_database(config)
    port = free_port()
    command: Command = [moorage.PROGRAMS / "moorage-placement", "--config-file", config, "--port", str(port)]
    with start_service(command, port, tmp_path / "log", ready=lambda: port_is_open(port)) as running:
        yield running


def _serial(service: Service, authority: Authority, client: Pair) -> int | None:
    """Of the certificate that it shows; None while it is between two workers."""
    context = ssl.create_default_context(cafile=authority.cert)
    context.load_cert_chain(client.cert, client.key)
    try:
        with (
            socket.create_connection(("127.0.0.1", service.port), 10) as raw,
            context.wrap_socket(raw, server_hostname="127.0.0.1") as connected,
        ):
            found = connected.getpeercert() or {}
            return int(str(found["serialNumber"]), 16)
    except OSError:
        return None


def test_who_has_a_certificate_is_served_by_one_that_is_renewed_while_it_runs(
    service: Service, authority: Authority, shown: Pair, tmp_path: Path
) -> None:
    url, client = f"https://127.0.0.1:{service.port}", authority.sign("client")
    made = requests.post(
        f"{url}/resource_providers",
        json={"name": "n"},
        headers=ADMIN,
        verify=str(authority.cert),
        cert=(str(client.cert), str(client.key)),
        timeout=10,
    )
    assert made.status_code == 200
    assert made.headers["location"].startswith(f"{url}/resource_providers/")
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{url}/healthz", verify=str(authority.cert), timeout=10)
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other", "other").sign("stranger")
    with pytest.raises(requests.ConnectionError):
        requests.get(
            f"{url}/healthz",
            verify=str(authority.cert),
            cert=(str(stranger.cert), str(stranger.key)),
            timeout=10,
        )
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{service.url}/healthz", timeout=10)

    before = _serial(service, authority, client)
    assert before is not None
    authority.sign("placement", "127.0.0.1")
    old_workers = service.pids()[1:]
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: not any(is_alive(pid) for pid in old_workers), "the old worker to end")
    wait_until(lambda: _serial(service, authority, client) is not None, "the new worker")
    renewed = _serial(service, authority, client)
    assert renewed not in (None, before)

    shown.key.write_text("nothing")
    service.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "SIGHUP is refused" in service.log.read_text(), "the refusal")
    assert _serial(service, authority, client) == renewed


def test_a_certificate_of_no_use_is_told_before_anything_listens(tmp_path: Path, shown: Pair) -> None:
    other = Authority(tmp_path, "elsewhere").sign("another")
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("")

    def files(**options: Path) -> TlsFiles | None:
        given = {f"compute.{name}": str(path) for name, path in options.items()}
        return TlsFiles.from_conf(settings.read([tmp_path / "none.conf"], given), "compute")

    (tmp_path / "none.conf").write_text("")
    assert files() is None
    assert files(cert=shown.both) == TlsFiles(shown.both, shown.both, None)
    for wrong in (
        {"key": shown.key},
        {"cert": shown.cert},
        {"cert": shown.cert, "key": other.key},
        {"cert": tmp_path / "missing"},
        {"cert": shown.both, "client_ca": nothing},
    ):
        with pytest.raises(ConfigError, match=r"\[compute\]"):
            files(**wrong)
