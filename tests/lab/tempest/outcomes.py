"""Prints what became of each test of a run, as JSON; runs under Tempest's Python, which can read the record:

    stestr last --subunit | python -P outcomes.py

What happens to a whole class (it is skipped, or its preparation fails) is recorded as a test called
`setUpClass (NAME OF THE CLASS)`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import subunit
import testtools

_DETAILS = ("traceback", "traceback-1", "reason")


def text(details: Any) -> str:
    return "\n".join(details[name].as_text().strip() for name in _DETAILS if name in details)


def main() -> None:
    outcomes: list[dict[str, Any]] = []

    def keep(test: dict[str, Any]) -> None:
        begun, ended = test["timestamps"]
        seconds = (ended - begun).total_seconds() if begun and ended else 0.0
        outcomes.append(
            {
                "name": test["id"].partition("[")[0],
                "outcome": test["status"],
                "detail": text(test["details"]),
                "seconds": seconds,
            }
        )

    result = testtools.StreamToDict(keep)
    result.startTestRun()
    subunit.ByteStreamToStreamResult(sys.stdin.buffer, non_subunit_name="stdout").run(result)
    result.stopTestRun()
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
