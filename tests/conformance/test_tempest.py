"""OpenStack's own tests of a cloud pass on ours: those that it calls smoke tests. `make tempest` runs all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conformance.tempest.cloud import started
from tests.conformance.tempest.settings import settings
from tests.lab.tempest.workspace import Workspace

SMOKE = r"^tempest\.api\.compute\..*\[.*\bsmoke\b"
BOOTED_FROM_A_VOLUME = "ServersTestBootFromVolume"


@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_smoke_tests(tmp_path: Path) -> None:
    with started(tmp_path) as cloud:
        workspace = Workspace(tmp_path / "tempest", settings(cloud, tmp_path / "tempest"))
        report = workspace.run(SMOKE, workers=2, output=subprocess.DEVNULL)
    assert report.failed == (), report.failures()
    assert len(report.passed) >= 15, report
    assert {one.name.split(".")[-2] for one in report.skipped} == {BOOTED_FROM_A_VOLUME}
