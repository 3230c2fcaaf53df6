"""A directory that Tempest runs in: its configuration, and the record of its last run."""

from __future__ import annotations

import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.lab.tempest.environment import HERE, TEMPEST
from tests.support.profiles import Settings, ini

_WHOLE_CLASS = re.compile(r"setUpClass \((?P<name>[\w.]+)\)")


class Outcome(msgspec.Struct, frozen=True):
    name: str
    outcome: str
    """`success`, `skip`, `xfail`, or anything else for a failure."""
    detail: str
    seconds: float


@dataclass(frozen=True)
class Report:
    """Every test that was asked for, in one of three lists."""

    passed: tuple[Outcome, ...]
    failed: tuple[Outcome, ...]
    skipped: tuple[Outcome, ...]

    def __str__(self) -> str:
        return f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"

    def failures(self) -> str:
        return "\n\n".join(f"{one.name}\n{one.detail}" for one in self.failed)


class Workspace:
    def __init__(self, directory: Path, settings: Settings) -> None:
        self.directory = directory
        self._programs = TEMPEST.bin()
        (library,) = TEMPEST.directory.glob("lib/python3*/site-packages/tempest")
        directory.mkdir(parents=True, exist_ok=True)
        self.config = directory / "tempest.conf"
        self.config.write_text(ini(settings))
        runner = {"test_path": str(library / "test_discover"), "top_dir": str(library)}
        # The tests of a class share what the class made: they stay with one worker.
        (directory / ".stestr.conf").write_text(ini({"DEFAULT": {**runner, "group_regex": r"([^\.]*\.)*"}}))
        if not (directory / ".stestr").exists():
            self._run(self._programs / "stestr", "init", stdout=None, check=True)

    def tests(self, regex: str) -> list[str]:
        """Which there are, whatever the configuration says of them."""
        listed = self._tempest("--regex", regex, "--list-tests", stdout=subprocess.PIPE).stdout.decode()
        return [line.partition("[")[0] for line in listed.splitlines() if line.startswith("tempest.")]

    def run(self, regex: str, workers: int, output: int | None = None) -> Report:
        """Prints a line for each test when it ends, unless `output` goes elsewhere."""
        asked = self.tests(regex)
        self._tempest("--regex", regex, "--concurrency", str(workers), stdout=output, check=False)
        return self._report(asked)

    def _report(self, asked: list[str]) -> Report:
        """A class that was skipped stands for its tests. What has no outcome at all has failed: its worker
        died, or the preparation of its class did."""
        classes = defaultdict(list)
        for name in asked:
            classes[name.rpartition(".")[0]].append(name)
        found: dict[str, Outcome] = {}
        for outcome in self._outcomes():
            whole = _WHOLE_CLASS.fullmatch(outcome.name)
            for name in classes[whole["name"]] if whole else [outcome.name]:
                found[name] = msgspec.structs.replace(outcome, name=name)
        lost = [Outcome(name, "lost", "It did not run.", 0.0) for name in asked if name not in found]
        all_of_them = sorted([*found.values(), *lost], key=lambda one: one.name)
        passed = tuple(one for one in all_of_them if one.outcome == "success")
        skipped = tuple(one for one in all_of_them if one.outcome == "skip")
        failed = tuple(one for one in all_of_them if one not in passed and one not in skipped)
        return Report(passed, failed, skipped)

    def _outcomes(self) -> Iterator[Outcome]:
        record = self._run(
            self._programs / "stestr", "last", "--subunit", stdout=subprocess.PIPE, check=False
        )
        told = subprocess.run(
            [str(self._programs / "python"), "-P", str(HERE / "outcomes.py")],
            input=record.stdout,
            stdout=subprocess.PIPE,
            check=True,
        )
        yield from msgspec.json.decode(told.stdout, type=list[Outcome])

    def _tempest(
        self, *words: str, stdout: int | None, check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        command: list[str | Path] = [self._programs / "tempest", "run", "--config-file", self.config, *words]
        return self._run(*command, stdout=stdout, check=check)

    def _run(
        self, *command: str | Path, stdout: int | None, check: bool
    ) -> subprocess.CompletedProcess[bytes]:
        """Nothing of the caller's cloud or home is read or written. Its runner runs tests with what PYTHON
        names, which `make test PYTHON=...` has in the environment."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OS_", "TEMPEST_"))}
        own = {"HOME": str(self.directory), "PYTHON": str(self._programs / "python")}
        environment = {**kept, **own, "PYTHONWARNINGS": "ignore"}
        words = [str(word) for word in command]
        return subprocess.run(words, cwd=self.directory, env=environment, stdout=stdout, check=check)
