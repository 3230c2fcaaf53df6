"""A Debian that has nothing else on it, in a directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import debian

SUITE = "bookworm"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_IN_ROOT = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
"""The mounts are gone with the namespace."""


class Root:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def command(self, *words: str) -> list[str]:
        """What runs `words` in there, and ends with them."""
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        return [*apart, "sh", "-c", _IN_ROOT, str(self.directory), *words]

    def run(self, *words: str, given: str = "") -> str:
        return said(self.command(*words), given)

    def has(self, path: str) -> bool:
        return os.path.lexists(self.directory / path.lstrip("/"))

    def copy(self, packages: list[Path], where: str) -> None:
        inside = self.directory / where
        inside.mkdir(exist_ok=True)
        for package in packages:
            shutil.copy(package, inside)

    def install(self, packages: list[Path]) -> None:
        self.copy(packages, "packages")
        self.run("dpkg", "--install", *(f"/packages/{package.name}" for package in packages))


def said(command: list[str], given: str = "") -> str:
    """What a command in a root says, which has to succeed."""
    environment = {"PATH": PATH, "DEBIAN_FRONTEND": "noninteractive", "LANG": "C.UTF-8"}
    ran = subprocess.run(
        command, input=given, capture_output=True, text=True, check=False, env=environment, timeout=600
    )
    assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
    return ran.stdout


@contextmanager
def made(directory: Path, *included: str) -> Iterator[Root]:
    """One with these packages; it goes in the end. Raises `Unavailable`."""
    debian.install("mmdebstrap")
    included = ("python3", "adduser", "ca-certificates", *included)
    subprocess.run(
        [
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            f"--include={','.join(included)}",
            SUITE,
            str(directory),
        ],
        check=True,
    )
    try:
        yield Root(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
