"""TLS to RabbitMQ as docs/operate/security.md sets it up: without a certificate nobody gets in."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from moorage.bus.contract import BusError, Task
from moorage.bus.messaging import MessagingConductorSide
from moorage.bus.options import OPTIONS
from moorage.core import config, uuids
from tests.support import debian, rabbitmq
from tests.support.processes import free_port
from tests.support.rabbitmq import CONFIGURATION

PAGE = Path(__file__).parents[3] / "docs" / "operate" / "security.md"


def blocks(kind: str, part: str) -> list[str]:
    """What the page's section on TLS has to be typed."""
    section = PAGE.read_text().split("## TLS to the broker")[1]
    return [text for text in re.findall(rf"```{kind}\n(.*?)```", section, re.DOTALL) if part in text]


def make_certificates(directory: Path) -> None:
    directory.mkdir()
    for commands in blocks("sh", "openssl"):
        subprocess.run(["bash", "-ec", commands], cwd=directory, check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    directory, port = tmp_path_factory.mktemp("tls"), free_port()
    for name in ("ours", "strangers"):
        make_certificates(directory / name)
    (text,) = blocks("text", "ssl_options")
    wanted = text.replace("listeners.tcp = none\n", "").replace("0.0.0.0:5671", f"127.0.0.1:{port}")
    try:
        with rabbitmq.start(CONFIGURATION + wanted.replace("/etc/rabbitmq", str(directory / "ours"))):
            yield directory, port
    except debian.Unavailable as error:
        pytest.skip(str(error))


def side(directory: Path, port: int, files: Path, *, certificate: bool = True) -> MessagingConductorSide:
    (text,) = blocks("ini", "oslo_messaging_rabbit")
    if not certificate:
        text = re.sub(r"ssl_(cert|key)_file.*\n", "", text)
    path = directory / f"{uuids.generate()}.conf"
    path.write_text(
        f"[DEFAULT]\ntransport_url = rabbit://guest:guest@127.0.0.1:{port}/\n"
        f"[bus]\nsend_retries = 0\n{text.replace('/etc/moorage', str(files))}"
    )
    conf: cfg.ConfigOpts = config.read([str(path)], [OPTIONS])
    return MessagingConductorSide(conf)


def gets_in(made: MessagingConductorSide) -> bool:
    try:
        made.cast("host-1", [Task(1, "server", "spawn", 1, "node")])
    except BusError:
        return False
    finally:
        made.close()
    return True


def test_only_who_has_a_certificate_of_ours_gets_in(site: tuple[Path, int]) -> None:
    directory, port = site
    assert gets_in(side(directory, port, directory / "ours"))
    assert not gets_in(side(directory, port, directory / "ours", certificate=False))


def test_a_broker_that_is_not_ours_is_not_spoken_to(site: tuple[Path, int]) -> None:
    directory, port = site
    assert not gets_in(side(directory, port, directory / "strangers"))


def test_new_connections_take_renewed_certificates(site: tuple[Path, int]) -> None:
    """The side stays the same: only what is in its files changes."""
    directory, port = site
    files = directory / "renewed"
    shutil.copytree(directory / "ours", files)
    same = side(directory, port, files)
    for name in ("client.pem", "client.key"):
        shutil.copy(directory / "strangers" / name, files / name)
    with pytest.raises(BusError):
        same.cast("host-1", [Task(1, "server", "spawn", 1, "node")])
    for name in ("client.pem", "client.key"):
        shutil.copy(directory / "ours" / name, files / name)
    assert gets_in(same)
