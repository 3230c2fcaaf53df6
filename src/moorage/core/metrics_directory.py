"""Where the worker processes of a service count what they do, in files that each of them can read.

Imports nothing of the library that counts: that looks for the directory once, when it is imported.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_OWNER = "MOORAGE_METRICS_OWNER"


def make() -> bool:
    """Unless there is one already; whether there was none."""
    missing = VARIABLE not in os.environ
    if missing:
        os.environ[VARIABLE] = tempfile.mkdtemp(prefix="moorage-metrics-")
        os.environ[_OWNER] = str(os.getpid())
    if os.environ.get(_OWNER) == str(os.getpid()):
        atexit.unregister(_remove)
        atexit.register(_remove, os.environ[VARIABLE], os.getpid())
    return missing


def _remove(directory: str, owner: int) -> None:
    if os.getpid() == owner:  # a forked worker must not take the files from the others
        shutil.rmtree(directory, ignore_errors=True)
