"""What a worker had ends with it; what it counted does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WORKER = """
from prometheus_client import Counter, Gauge
from moorage.core import metrics

Counter("served", "Requests.").inc()
Gauge("held", "Connections.", multiprocess_mode="livesum").set(5)
print(metrics.exposition().decode())
"""


def work(directory: Path) -> list[str]:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(directory)}
    done = subprocess.run(
        [sys.executable, "-c", WORKER], env=environment, capture_output=True, text=True, check=True
    )
    return sorted(line for line in done.stdout.splitlines() if line and not line.startswith("#"))


def test_a_worker_that_was_replaced_has_nothing_any_more(tmp_path: Path) -> None:
    assert work(tmp_path) == ["held 5.0", "served_total 1.0"]
    assert work(tmp_path) == ["held 5.0", "served_total 2.0"]
