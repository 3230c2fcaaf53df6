"""Virtual environments for programs that must not share one with ours, made on first need below `.venvs`.

The reference services and the official clients pull in web stacks of their own; kept apart, they can neither
break nor lend a dependency to Moorage.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOME = (Path(__file__).resolve().parents[2] / ".venvs").resolve()
_UNSAID = "setuptools<81"
"""Some of the programs import `pkg_resources` without saying that they need it."""


@dataclass(frozen=True)
class Environment:
    """One environment: what it holds, and the exact versions."""

    name: str
    requirements: Path
    constraints: Path

    @property
    def directory(self) -> Path:
        return HOME / self.name

    def bin(self) -> Path:
        """The `bin` directory of an environment that matches the pins; made if there is none."""
        with self.locked():
            if not self._is_current():
                self._build()
            self._hurry()
        return self.directory / "bin"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Parallel test workers must not build the same thing twice."""
        HOME.mkdir(parents=True, exist_ok=True)
        with open(HOME / f"{self.name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _fingerprint(self) -> str:
        """Its place is part of it: the programs of an environment that was moved don't find their Python."""
        pins = self.requirements.read_bytes() + self.constraints.read_bytes() + sys.version.encode()
        return hashlib.sha256(pins + str(self.directory).encode()).hexdigest()

    def _is_current(self) -> bool:
        stamp = self.directory / "moorage.stamp"
        return stamp.exists() and stamp.read_text() == self._fingerprint()

    def _hurry(self) -> None:
        """Its programs look for garbage seldom: what they make while they import stays, and to look for
        garbage in there, again and again, takes a quarter of their start."""
        (packages,) = self.directory.glob("lib/python*/site-packages")
        told = packages / "garbage.pth"
        if not told.exists():
            told.write_text("import gc; gc.set_threshold(50_000, 20, 20)\n")

    def _build(self) -> None:
        """The constraints name everything there is, so nothing has to be resolved; and nothing is compiled
        ahead of time, since most of it is never imported: both halve the time that an environment takes.
        """
        shutil.rmtree(self.directory, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.directory)], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(self.directory / "bin" / "python"), "install"]
        everything = ["-r", str(self.requirements), "-r", str(self.constraints), _UNSAID]
        subprocess.run([*pip, "--quiet", "--no-compile", "--no-deps", *everything], check=True)
        (self.directory / "moorage.stamp").write_text(self._fingerprint())
