"""What the tests of packages install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from packages import source


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    target = tmp_path_factory.mktemp("packages")
    subprocess.run(
        [sys.executable, "-m", "packages.debian", str(target)],
        check=True,
        cwd=source.ROOT,
        env={**os.environ, "PYTHONPATH": str(source.ROOT)},
    )
    return sorted(target.glob("*.deb"))
