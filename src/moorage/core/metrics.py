"""Metrics of all worker processes of a service, whichever of them is asked."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest, multiprocess

from moorage.core import metrics_directory

CONTENT_TYPE = CONTENT_TYPE_LATEST


def share_among_workers() -> None:
    """Called by a parent before it starts workers: they will count in files that each of them can read.

    The library looks for the directory once, when it is imported, so a parent that was imported without
    one (`cli/launch.py`) starts anew.
    """
    if metrics_directory.make():
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def exposition() -> bytes:
    """All metrics, in Prometheus' text format."""
    if metrics_directory.VARIABLE not in os.environ:
        return generate_latest(REGISTRY)
    _forget_the_dead(Path(os.environ[metrics_directory.VARIABLE]))
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)


def _forget_the_dead(directory: Path) -> None:
    """What workers had that have been replaced: their connections, for one, are nobody's any more. What they
    counted stays."""
    for file in directory.glob("gauge_live*_*.db"):
        pid = file.stem.rpartition("_")[2]
        if pid.isdigit() and not Path("/proc", pid).exists():
            multiprocess.mark_process_dead(int(pid), str(directory))  # type: ignore[no-untyped-call]
