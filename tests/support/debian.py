"""Programs of Debian: where one is missing and we are root, it is installed, but not started as a service."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Unavailable(Exception):
    """The program is not there, and we may not install it."""


def install(package: str, program: Path) -> None:
    if program.exists():
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Unavailable(f"{program.name} is missing: install the package {package}")
    with _services_stay_off():
        said = _apt("install", "--no-install-recommends", package)
        if not program.exists():  # a fresh machine does not know yet what there is
            said = _apt("update") + _apt("install", "--no-install-recommends", package)
    if not program.exists():
        raise Unavailable(f"{package} can't be installed: {said[-500:]}")


def _apt(*command: str) -> str:
    run = subprocess.run(
        ["apt-get", "-y", "-q", *command],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr


@contextmanager
def _services_stay_off() -> Iterator[None]:
    """Debian asks this file before it starts a service; a test must not leave one running."""
    policy = Path("/usr/sbin/policy-rc.d")
    if policy.exists():
        yield
        return
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink()
