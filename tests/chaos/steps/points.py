"""Points in the work of a process at which it can be killed: seen in one run, struck in another.

A plan is a file that all processes of a cloud look at: to write down what they come to, or to die there.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

_TRACE = "trace"


class Points:
    def __init__(self, directory: Path) -> None:
        self._plan = directory / "plan"
        self._seen = directory / "seen"

    # ------------------------------------------------------------ for processes

    def reach(self, point: str) -> None:
        try:
            plan = self._plan.read_text()
        except FileNotFoundError:
            return
        if plan == _TRACE:
            with self._seen.open("a") as seen:
                seen.write(f"{point}\n")
        elif plan == point and self._take():
            os.kill(os.getpid(), signal.SIGKILL)

    def _take(self) -> bool:
        """One process dies of a plan, and once: whoever comes to the same point later lives."""
        try:
            self._plan.rename(self._plan.with_name("struck"))
        except FileNotFoundError:
            return False
        return True

    # ------------------------------------------------------------ for tests

    def trace(self) -> None:
        self._seen.unlink(missing_ok=True)
        self._write(_TRACE)

    def seen(self) -> list[str]:
        """Since `trace`, each once, in the order in which they were come to first; that is over then."""
        self._plan.unlink(missing_ok=True)
        return list(dict.fromkeys(self._seen.read_text().splitlines())) if self._seen.exists() else []

    def arm(self, point: str) -> None:
        self._write(point)

    def is_armed(self) -> bool:
        """Nobody has come there yet."""
        return self._plan.exists()

    def disarm(self) -> None:
        self._plan.unlink(missing_ok=True)

    def _write(self, plan: str) -> None:
        """At once, or a process would read half of it."""
        half = self._plan.with_name("half")
        half.write_text(plan)
        half.rename(self._plan)
