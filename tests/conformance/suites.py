"""Suites that others publish, the reference's and the official client's: where they are, who runs them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.conformance.reference_env import reference_bin
from tests.support.environments import Environment
from tests.support.profiles import Profile

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CLIENT_SUITES = Environment("osc", HERE / "osc-requirements.txt", HERE / "osc-constraints.txt")

# The suites' word for a configuration is a fixture.
PROFILES = {
    "OpenPolicyFixture": Profile.OPEN_POLICY,
    "SecureRBACPolicyFixture": Profile.SECURE_RBAC,
    "LegacyRBACPolicyFixture": Profile.LEGACY_RBAC,
    "CORSFixture": Profile.CORS,
}

EXCLUDED = {
    ("basic-http", "bad content length not int"): (
        'the HTTP client refuses to send "Content-Length: hi mom", and a real HTTP server rejects it '
        "before the application sees it"
    ),
}


@dataclass(frozen=True)
class Verdict:
    """What became of one test of a suite."""

    name: str
    outcome: str
    detail: str


@cache
def suite_files() -> tuple[Path, ...]:
    (directory,) = reference_bin().parent.glob(
        "lib/python3*/site-packages/placement/tests/functional/gabbits"
    )
    return tuple(sorted(directory.glob("*.yaml")))


@cache
def client_suites() -> tuple[str, ...]:
    """The modules of the client's functional tests."""
    (directory,) = CLIENT_SUITES.bin().parent.glob(
        "lib/python3*/site-packages/osc_placement/tests/functional"
    )
    return tuple(sorted(file.stem for file in directory.glob("test_*.py")))


def profile_of(suite: Path) -> Profile:
    text = suite.read_text()
    return next((profile for fixture, profile in PROFILES.items() if fixture in text), Profile.DEFAULT)


class Runner:
    """A process in a foreign environment that is told, line by line, what to run."""

    def __init__(self, programs: Path, module: str, log: Path) -> None:
        self.log = log
        self._process = subprocess.Popen(
            [str(programs / "python"), "-W", "ignore", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("ab"),
            cwd=ROOT,
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
            text=True,
        )

    def ask(self, order: dict[str, str]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the runner ended: {self.log.read_text(errors='replace')[-2000:]}")
        return json.loads(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)


class GabbiRunner(Runner):
    """Runs the reference's suites, one after another."""

    def __init__(self, log: Path) -> None:
        super().__init__(reference_bin(), "tests.conformance.gabbi_runner", log)

    def run(self, suite: str, url: str) -> list[Verdict]:
        return [Verdict(**verdict) for verdict in self.ask({"suite": suite, "url": url})]


class ClientRunner(Runner):
    """Runs the functional tests of the official client's Placement commands, one after another."""

    def __init__(self, log: Path) -> None:
        super().__init__(CLIENT_SUITES.bin(), "tests.conformance.osc_runner", log)

    def names(self, module: str) -> list[str]:
        names: list[str] = self.ask({"module": module})
        return names

    def run(self, test: str, url: str) -> Verdict:
        return Verdict(**self.ask({"test": test, "url": url}))


def readable(failed: list[Verdict], total: int) -> str:
    """What to say of a suite that did not pass."""
    heads = [f"{verdict.name}\n    {_gist(verdict.detail)}" for verdict in failed]
    return f"{len(failed)} of {total} tests failed:\n" + "\n".join(heads)


def _gist(detail: str) -> str:
    """The assertion, without the traceback of the machinery."""
    lines = [line.strip() for line in detail.splitlines() if line.strip() and 'File "' not in line]
    said = [
        line for line in lines if re.match(r"(AssertionError|\w*Error|\w*Exception|fixture|[\w.]+:)", line)
    ]
    return "\n    ".join((said or lines)[-3:])[:600]
