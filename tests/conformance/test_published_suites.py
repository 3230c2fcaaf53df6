"""Every behaviour suite that the reference publishes passes against our service, on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.suites import EXCLUDED, GabbiRunner, profile_of, readable, suite_files
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
        pytest.fail(readable(failed, len(verdicts)), pytrace=False)
