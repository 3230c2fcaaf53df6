"""Every behaviour suite that the reference publishes passes against our service, on both databases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.suites import EXCLUDED, GabbiRunner, Verdict, profile_of, suite_files
from tests.support.stage import Stage


def test_all_suites_are_here() -> None:
    assert len(suite_files()) == 79


@pytest.mark.parametrize("suite", suite_files(), ids=lambda suite: suite.stem)
def test_suite(suite: Path, gabbi: GabbiRunner, moorage_service: Stage) -> None:
    port = moorage_service.fresh(profile_of(suite))
    verdicts = gabbi.run(suite.stem, f"http://127.0.0.1:{port}")
    failed = [
        verdict
        for verdict in verdicts
        if verdict.outcome == "fail" and (suite.stem, verdict.name) not in EXCLUDED
    ]
    if failed:
        pytest.fail(_readable(failed, len(verdicts)), pytrace=False)


def _readable(failed: list[Verdict], total: int) -> str:
    heads = [f"{verdict.name}\n    {_gist(verdict.detail)}" for verdict in failed]
    return f"{len(failed)} of {total} tests failed:\n" + "\n".join(heads)


def _gist(detail: str) -> str:
    """The assertion, without the traceback of the machinery."""
    lines = [line.strip() for line in detail.splitlines() if line.strip() and 'File "' not in line]
    said = [
        line for line in lines if re.match(r"(AssertionError|\w*Error|\w*Exception|fixture|[\w.]+:)", line)
    ]
    return "\n    ".join((said or lines)[-3:])[:600]
