"""The wheel: what is in it, and that it runs by itself where nothing else of us is."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from packages import source
from tests.support.processes import Command, free_port, port_is_open, start_service


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    ours = source.copy_to(directory / "source")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(directory)]
    subprocess.run([*pip, str(ours)], check=True)
    [made] = directory.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_string(archive.read(name).decode())


def test_a_wheel_has_the_programs_and_what_they_serve_but_no_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {
        "moorage/py.typed",
        "moorage/cli/main.py",
        "moorage/consoles/static/serial.html",
        "moorage/consoles/novnc/core/rfb.js",
        "moorage/db/migrations/env.py",
        "moorage/db/migrations/versions/0001_placement.py",
    } <= names
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"moorage"}
    assert not [name for name in names if "/test_" in name or name.endswith("conftest.py")]


def test_a_wheel_says_what_it_is(metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "Compute" in str(metadata["Summary"])
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in (metadata.get_all("Classifier") or [])


def test_what_a_wheel_unpacks_to_runs(wheel: Path, metadata: Message, tmp_path: Path) -> None:
    """With the libraries of this environment, and our code from nowhere else."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "lib")
    told = subprocess.run(
        [sys.executable, "-c", "import moorage; print(moorage.__file__)"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "lib")},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert told.stdout.startswith(str(tmp_path / "lib"))
    ran = subprocess.run(
        [
            *(sys.executable, "-c", "from moorage.cli.manage.manage import main; main()"),
            *("install-files", "--root", str(tmp_path / "root"), "--programs", "/opt/moorage/bin"),
        ],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "lib")},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert f"written: {tmp_path}/root/etc/systemd/system/moorage-api.service" in ran.stdout
    page = tmp_path / "root/usr/local/share/man/man1/moorage-api.1"
    assert f"Moorage {metadata['Version']}" in page.read_text()


@pytest.mark.skipif(not os.environ.get("MOORAGE_PACKAGES"), reason="minutes of a processor: make packages")
@pytest.mark.timeout(900)
def test_a_wheel_runs_in_an_environment_that_has_nothing_else(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    bin_ = tmp_path / "venv/bin"
    pinned = ["--constraint", str(source.ROOT / "requirements/ci.txt")]
    subprocess.run([bin_ / "pip", "install", "--quiet", *pinned, wheel], check=True)
    placement, compute = free_port(), free_port()
    command: Command = [
        *(bin_ / "moorage", "up", "--data", tmp_path / "data", "--auth", "none"),
        *("--placement-port", str(placement), "--compute-port", str(compute)),
    ]
    with start_service(command, compute, tmp_path / "log", ready=lambda: port_is_open(compute)):
        flavor = ["--flavor", "m1.tiny", "--image", "cirros-0.6.3-x86_64-disk"]
        planned = subprocess.run(
            [bin_ / "moorage", "plan", *flavor, "--data", tmp_path / "data"],
            capture_output=True,
            text=True,
            check=True,
        )
    assert "fake-" in planned.stdout
