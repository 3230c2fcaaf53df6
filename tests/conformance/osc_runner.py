"""Runs the functional tests of the official client's Placement commands against any HTTP endpoint.

They normally start the reference in their own process, by its fixtures. Here two modules of ours stand where
they look for these fixtures, and theirs say where the service under test is; everything else is as published.

Runs under the client's Python (`python -m tests.conformance.osc_runner`): each line on standard input is
`{"module": NAME}`, answered by the names of its tests, or `{"test": NAME, "url": URL}`, answered by what
became of it.
"""

from __future__ import annotations

import json
import sys
import types
import unittest
from collections.abc import Iterator

import fixtures

FIXTURES = "placement.tests.functional.fixtures"
SUITES = "osc_placement.tests.functional"


class PlacementFixture(fixtures.Fixture):  # type: ignore[misc]
    """Where the service is, and as whom to speak to it."""

    endpoint = ""
    token = "admin"


def stand_in_for_fixtures() -> None:
    parts = FIXTURES.split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        sys.modules[name] = types.ModuleType(name)
    for name, attribute, value in (
        ("capture", "Logging", fixtures.FakeLogger),
        ("placement", "PlacementFixture", PlacementFixture),
    ):
        module = types.ModuleType(f"{FIXTURES}.{name}")
        setattr(module, attribute, value)
        sys.modules[module.__name__] = module
        setattr(sys.modules[FIXTURES], name, module)


def tests_of(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def names_in(module: str) -> list[str]:
    found = unittest.defaultTestLoader.loadTestsFromName(f"{SUITES}.{module}")
    return [test.id().removeprefix(f"{SUITES}.") for test in tests_of(found)]


def run(name: str, url: str) -> dict[str, str]:
    PlacementFixture.endpoint = url
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromName(f"{SUITES}.{name}").run(result)
    troubles = [*result.errors, *result.failures]
    if troubles:
        return {"name": name, "outcome": "fail", "detail": troubles[0][1]}
    if result.skipped:
        return {"name": name, "outcome": "skip", "detail": result.skipped[0][1]}
    return {"name": name, "outcome": "pass" if result.testsRun == 1 else "fail", "detail": str(result)}


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is not an answer
    stand_in_for_fixtures()
    for line in sys.stdin:
        order = json.loads(line)
        answer = names_in(order["module"]) if "module" in order else run(order["test"], order["url"])
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
