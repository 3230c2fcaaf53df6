"""Runs the reference's own published gabbi suites against any HTTP endpoint.

The suites normally run inside the reference's process, and their fixtures write to its database with
its own objects. Here the reference's fixture classes run unmodified, but all that they would touch in
the process is replaced: the database helpers by calls to the HTTP API of the service under test,
configuration and logging by mocks. So the same data, the same UUIDs and the same $ENVIRON variables come
about, over HTTP.

Runs under the reference's Python (`python -m tests.conformance.gabbi_runner`): each line on standard
input is `{"suite": NAME, "url": URL}`; each answer is the list of that suite's tests with outcomes.
"""

from __future__ import annotations

import json
import sys
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import placement.tests.functional
from gabbi import handlers, suitemaker
from gabbi import utils as gabbi_utils
from oslo_utils import uuidutils
from oslo_utils.fixture import uuidsentinel
from placement.tests.functional.fixtures import gabbits as reference_fixtures

from tests.conformance.gabbi_database import Api, Database

SUITES = Path(next(iter(placement.tests.functional.__path__))) / "gabbits"
REPLACED_BY_HTTP = ("tb", "user_obj", "project_obj", "rc_obj")
PROCESS_LOCAL = (
    *("capture", "cfg", "conf", "config_fixture", "context", "fixtures", "logging_error", "output"),
    *("policies", "policy_fixture", "policy_opts"),
)

Outcome = dict[str, str]


class Recorder(unittest.TestResult):
    """Outcomes in order; names are not unique in every suite."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[Outcome] = []

    def record(self, test: Any, outcome: str, detail: str = "") -> None:
        data = getattr(test, "test_data", None)
        name = data["name"] if data else str(test)
        self.outcomes.append({"name": name, "outcome": outcome, "detail": detail})

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        self.record(test, "pass")

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self.record(test, "fail", self._exc_info_to_string(err, test))  # type: ignore[attr-defined]

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        self.addFailure(test, err)

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        self.record(test, "skip", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self.record(test, "expected-failure")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        self.record(test, "fail", "passed, but the suite says that it should fail")


def fixtures_over_http(url: str) -> ModuleType:
    """The reference's fixture module with its process-local parts replaced."""
    database = Database(Api(url), uuidsentinel, uuidutils.generate_uuid)
    for name in REPLACED_BY_HTTP:
        setattr(reference_fixtures, name, database)
    for name in PROCESS_LOCAL:
        setattr(reference_fixtures, name, mock.MagicMock(name=name))
    module: ModuleType = reference_fixtures
    return module


def run_suite(name: str, url: str) -> list[Outcome]:
    data = gabbi_utils.load_yaml(yaml_file=str(SUITES / f"{name}.yaml"))
    # Plain HTTP: loading certificates for every test would cost more than all the rest.
    data.setdefault("defaults", {})["cert_validate"] = False
    host, port, prefix, _ = gabbi_utils.host_info_from_target(url)
    suite = suitemaker.test_suite_from_dict(
        unittest.TestLoader(),
        name,
        data,
        str(SUITES),
        host,
        port,
        fixtures_over_http(url),
        None,
        prefix=prefix,
        handlers=[handler() for handler in handlers.RESPONSE_HANDLERS],
    )
    recorder = Recorder()
    try:
        suite.run(recorder)
    except Exception as error:  # a fixture could not be made: none of its tests means anything
        recorder.outcomes = [
            {"name": test["name"], "outcome": "fail", "detail": f"fixture: {error!r}"}
            for test in data["tests"]
        ]
    if len(recorder.outcomes) != len(data["tests"]):
        missing = f"{len(recorder.outcomes)} of {len(data['tests'])} tests ran"
        recorder.outcomes.append({"name": "(whole suite)", "outcome": "fail", "detail": missing})
    return recorder.outcomes


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is not an answer
    for line in sys.stdin:
        order = json.loads(line)
        answers.write(json.dumps(run_suite(order["suite"], order["url"])) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
