"""Metrics of all worker processes of a service, whichever of them is asked."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest, multiprocess

CONTENT_TYPE = CONTENT_TYPE_LATEST
_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
_OWNER = "MOORAGE_METRICS_OWNER"


def share_among_workers() -> None:
    """Called by a parent before it starts workers: they will count in files that each of them can read.

    The library looks for the directory once, when it is imported, so a parent that has none starts anew.
    """
    if _DIRECTORY not in os.environ:
        os.environ[_DIRECTORY] = tempfile.mkdtemp(prefix="moorage-metrics-")
        os.environ[_OWNER] = str(os.getpid())
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    if os.environ.get(_OWNER) == str(os.getpid()):
        atexit.register(_remove, os.environ[_DIRECTORY], os.getpid())


def _remove(directory: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked worker must not take the files from the others
        shutil.rmtree(directory, ignore_errors=True)


def exposition() -> bytes:
    """All metrics, in Prometheus' text format."""
    if _DIRECTORY not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
