"""The reference's behaviour suites: where they are, what each expects, and who runs them."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.conformance.reference_env import reference_bin
from tests.support.profiles import Profile

ROOT = Path(__file__).resolve().parents[2]

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


def profile_of(suite: Path) -> Profile:
    text = suite.read_text()
    return next((profile for fixture, profile in PROFILES.items() if fixture in text), Profile.DEFAULT)


class GabbiRunner:
    """A process in the reference's environment that runs suite after suite."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._process = subprocess.Popen(
            [str(reference_bin() / "python"), "-W", "ignore", "-m", "tests.conformance.gabbi_runner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("ab"),
            cwd=ROOT,
            text=True,
        )

    def run(self, suite: str, url: str) -> list[Verdict]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"suite": suite, "url": url}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the gabbi runner ended: {self.log.read_text(errors='replace')[-2000:]}")
        return [Verdict(**verdict) for verdict in json.loads(answer)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)
