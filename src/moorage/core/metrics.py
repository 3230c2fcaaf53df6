"""Metrics of all worker processes of a service, whichever of them is asked."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest, multiprocess

CONTENT_TYPE = CONTENT_TYPE_LATEST
_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"


def share_among_workers() -> None:
    """Called by a parent before it starts workers: they will count in files that each of them can read."""
    if _DIRECTORY not in os.environ:
        directory = tempfile.mkdtemp(prefix="moorage-metrics-")
        os.environ[_DIRECTORY] = directory
        owner = os.getpid()
        atexit.register(
            lambda: shutil.rmtree(directory, ignore_errors=True) if os.getpid() == owner else None
        )


def exposition() -> bytes:
    """All metrics, in Prometheus' text format."""
    if _DIRECTORY not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
