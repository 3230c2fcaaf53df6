"""Packages of Debian in a root that has nothing else: installed, run, upgraded, removed, purged."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from packages.debian.control import COMMON
from tests.support import debian_root
from tests.support.debian import Unavailable
from tests.support.debian_root import Root
from tests.support.processes import free_port, start_service

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("MOORAGE_PACKAGES"), reason="minutes of a processor: make packages"
    ),
    pytest.mark.timeout(1200),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    try:
        with debian_root.made(tmp_path_factory.mktemp("debian") / "root") as made:
            yield made
    except Unavailable as error:
        pytest.skip(str(error))


def newer(package: Path, directory: Path) -> Path:
    """The same, as the next revision of it, with another default in its configuration."""
    tree = directory / package.stem
    subprocess.run(["dpkg-deb", "--raw-extract", str(package), str(tree)], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(control.read_text().replace("0-1\n", "0-2\n").replace("0-1)", "0-2)"))
    with suppress(FileNotFoundError):
        conf = tree / "etc/moorage/moorage.conf"
        conf.write_text(conf.read_text() + "# another default\n")
    made = directory / package.name.replace("0-1_", "0-2_")
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", str(tree), str(made)],
        check=True,
        capture_output=True,
    )
    shutil.rmtree(tree)
    return made


def _answers(root: Root, log: Path) -> None:
    """Placement starts as the package has it, on SQLite, and lets in who has a password."""
    port = free_port()
    command = root.command("runuser", "-u", "moorage", "--", "moorage-placement", "--port", str(port))

    def ready() -> bool:
        with suppress(requests.ConnectionError):
            return requests.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200
        return False

    with start_service(command, port, log, ready=ready) as service:
        asked = f"{service.url}/resource_providers"
        assert requests.get(asked, timeout=30).status_code == 401
        allowed = requests.get(asked, auth=("admin", "secret"), timeout=30)
        assert allowed.json() == {"resource_providers": []}


def test_the_life_of_the_packages(root: Root, packages: list[Path], tmp_path: Path) -> None:
    root.install(packages)
    assert "Run all services in this process" in root.run("moorage", "up", "--help")
    for program in ("moorage", "moorage-manage", "moorage-status", "moorage-agent", "moorage-api"):
        assert root.run(program, "--version").startswith(f"{program} ")
    assert root.run("stat", "-c", "%U:%G %a", "/etc/moorage/moorage.conf") == "root:moorage 640\n"
    assert root.has("/usr/lib/systemd/system/moorage-agent.service")
    assert root.has("/usr/share/man/man1/moorage-agent.1.gz")

    root.run("moorage-manage", "auth", "set-password", "admin", "--stdin", given="secret\n")
    root.run("sh", "-c", "chgrp moorage /etc/moorage/htpasswd && chmod 640 /etc/moorage/htpasswd")
    assert "schema empty -> " in root.run("runuser", "-u", "moorage", "--", "moorage-manage", "db", "sync")
    nobody = "moorage-manage placement compare --with mysql://x@127.0.0.1:1/x 2>&1 || true"
    assert "can't be opened" in root.run("sh", "-c", nobody), "the driver came along"
    _answers(root, tmp_path / "first.log")

    conf = root.directory / "etc/moorage/moorage.conf"
    conf.write_text(conf.read_text() + "[log]\nlevel = DEBUG\n")
    root.run("dpkg", "--install", "--force-confold", *_copied(root, packages, tmp_path))
    assert root.run("dpkg-query", "-W", "-f", "${Version}", COMMON).endswith("-2")
    assert "level = DEBUG" in conf.read_text()
    assert root.has("/etc/moorage/moorage.conf.dpkg-dist")
    assert "nothing to do" in root.run("runuser", "-u", "moorage", "--", "moorage-manage", "db", "sync")
    _answers(root, tmp_path / "second.log")

    names = [package.name.split("_")[0] for package in packages]
    root.run("dpkg", "--remove", *names)
    assert not root.has("/usr/lib/moorage")
    assert not root.has("/usr/bin/moorage")
    assert "level = DEBUG" in conf.read_text()
    assert root.has("/var/lib/moorage/moorage.sqlite")
    root.run("dpkg", "--purge", *names)
    for path in ("/etc/moorage", "/var/lib/moorage", "/usr/lib/moorage"):
        assert not root.has(path)
    assert "moorage" not in (root.directory / "etc/passwd").read_text()


def _copied(root: Root, packages: list[Path], directory: Path) -> list[str]:
    """Newer ones, by their path in there."""
    names = []
    for package in packages:
        made = newer(package, directory)
        shutil.move(made, root.directory / "packages" / made.name)
        names.append(f"/packages/{made.name}")
    return names
