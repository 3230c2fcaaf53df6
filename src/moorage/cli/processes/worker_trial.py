"""A worker that is started only to see whether one would start: before those that work make way for it.

In a process of its own, since what a configuration does to a worker shows only where all of it is built.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import threading

from moorage.cli import errors
from moorage.cli.errors import CommandError
from moorage.core import metrics_directory

_SECONDS = 60.0
_PROGRAM = f"import sys; sys.path[:] = sys.argv[1:-1]; from {__name__} import main; main(sys.argv[-1])"
"""A package's launchers say by themselves where everything is."""


def require_a_start(factory: str) -> None:
    """CommandError, with the reason, if a worker that `factory` ("module:function") makes would not start."""
    with tempfile.TemporaryDirectory(prefix="moorage-trial-") as counts:
        # It must not count among the workers.
        environment = {**os.environ, metrics_directory.VARIABLE: counts}
        with subprocess.Popen(
            [sys.executable, "-sP", "-c", _PROGRAM, *sys.path, factory],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as trial:
            try:
                code = trial.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                trial.kill()
                raise CommandError(f"a new worker does not start within {_SECONDS:g} s") from None
            assert trial.stdout is not None
            said = trial.stdout.read().strip()
    if code:
        raise CommandError(said or f"a new worker ends at its start, with {code}")


def main(factory: str) -> None:
    """Of the process that is such a worker."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    module, _, name = factory.partition(":")
    try:
        getattr(importlib.import_module(module), name)()
    except Exception as error:
        is_expected = isinstance(error, errors.expected())
        _leave(1, errors.sentence(error) if is_expected else f"{type(error).__name__}: {error}")
    _leave(0)


def _end_with_parent() -> None:
    """Who asks keeps our standard input open for as long as it lives."""
    sys.stdin.read()
    os._exit(1)


def _leave(code: int, reason: str = "") -> None:
    """At once, whatever threads a worker has."""
    print(reason, flush=True)
    os._exit(code)
