"""Make `.venvs/reference`: the reference Placement service in an environment of its own.

The reference pins nothing and pulls in a web stack of its own; kept apart, it can neither break nor
lend a dependency to ours. Run as a script to create the environment ahead of time:

    python -m tests.conformance.reference_env
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent.parent / ".venvs" / "reference"
REQUIREMENTS = HERE / "reference-requirements.txt"
CONSTRAINTS = HERE / "reference-constraints.txt"


def reference_bin() -> Path:
    """The `bin` directory of a reference environment that matches the pins; made on first need."""
    ENVIRONMENT.parent.mkdir(parents=True, exist_ok=True)
    with open(ENVIRONMENT.parent / "reference.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test workers must not build it twice
        if not _is_current():
            _build()
    return ENVIRONMENT / "bin"


def _fingerprint() -> str:
    pins = REQUIREMENTS.read_bytes() + CONSTRAINTS.read_bytes() + sys.version.encode()
    return hashlib.sha256(pins).hexdigest()


def _is_current() -> bool:
    stamp = ENVIRONMENT / "moorage.stamp"
    return stamp.exists() and stamp.read_text() == _fingerprint()


def _build() -> None:
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    _create_empty()
    pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "-r", str(REQUIREMENTS), "-c", str(CONSTRAINTS)], check=True)
    (ENVIRONMENT / "moorage.stamp").write_text(_fingerprint())


def _create_empty() -> None:
    """Debian ships `venv` without `ensurepip` unless asked; `virtualenv` carries its own pip."""
    made = subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], capture_output=True)
    if made.returncode == 0:
        return
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "virtualenv"], check=True)
    subprocess.run([sys.executable, "-m", "virtualenv", "--quiet", str(ENVIRONMENT)], check=True)


if __name__ == "__main__":
    print(reference_bin())
