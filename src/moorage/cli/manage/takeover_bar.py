"""How far a take-over is, for somebody who looks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from moorage.takeover import progress


@contextmanager
def bar(*, quiet: bool) -> Iterator[progress.Progress]:
    """A line for each kind of thing; none if nobody looks, or a program does."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    shown = not quiet and sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as drawn:
        tasks: dict[str, TaskID] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = drawn.add_task(what, total=total)
            drawn.update(tasks[what], completed=done, total=max(done, total))

        yield tell
