"""TLS to PostgreSQL as docs/operate/security.md sets it up: without a certificate nobody gets in."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from moorage.db import engine
from tests.support import debian, debian_postgres
from tests.support.debian_postgres import DebianPostgres
from tests.support.processes import wait_until

PAGE = (Path(__file__).parents[2] / "docs" / "operate" / "security.md").read_text()


def block(kind: str, part: str) -> str:
    (found,) = (text for text in re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL) if part in text)
    return str(found)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DebianPostgres, Path]]:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    files = tmp_path_factory.mktemp("tls")
    for part in ("/CN=Moorage CA", "for name in broker"):
        command = block("sh", part)
        subprocess.run(["bash", "-ec", command], cwd=files, check=True, capture_output=True, timeout=60)
    (files / "client.key").chmod(0o600)
    try:
        with debian_postgres.running() as server:
            _encrypt(server, files)
            yield server, files
    except debian.Unavailable as error:
        pytest.skip(str(error))


def _encrypt(server: DebianPostgres, files: Path) -> None:
    data = Path(server.ask("SHOW data_directory"))
    for name in ("ca.pem", "broker.pem", "broker.key"):
        shutil.copy(files / name, data / name)
        shutil.chown(data / name, "postgres")
        (data / name).chmod(0o600)
    with Path(server.ask("SHOW config_file")).open("a") as configuration:
        configuration.write(block("text", "ssl_cert_file = '").replace("/etc/postgresql", str(data)))
    Path(server.ask("SHOW hba_file")).write_text(f"local all postgres peer\n{block('text', 'hostssl')}")
    server.ask("CREATE ROLE moorage LOGIN PASSWORD 'secret'")
    server.ask("SELECT pg_reload_conf()")
    wait_until(lambda: server.ask("SHOW ssl") == "on", "PostgreSQL to read its files", 20)


def url(server: DebianPostgres, files: Path) -> str:
    (found,) = re.findall(r"connection = (\S+)", block("ini", "sslrootcert"))
    here = str(found).replace("db.example.com:5432/moorage", f"127.0.0.1:{server.port}/postgres")
    return here.replace("/etc/moorage", str(files))


def encrypted(address: str) -> bool:
    made = engine.connect(address)
    try:
        with made.connect() as connection:
            query = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
            return bool(connection.execute(sa.text(query)).scalar_one())
    finally:
        made.dispose()


def test_who_has_a_certificate_gets_in(site: tuple[DebianPostgres, Path]) -> None:
    assert encrypted(url(*site))


def test_who_has_none_does_not(site: tuple[DebianPostgres, Path]) -> None:
    bare = re.sub(r"&ssl(cert|key)=[^&]*", "", url(*site))
    with pytest.raises(sa.exc.OperationalError, match="certificate"):
        encrypted(f"{bare}&sslcert=/none")
    with pytest.raises(sa.exc.OperationalError):
        encrypted(bare.split("?")[0] + "?sslmode=disable")
