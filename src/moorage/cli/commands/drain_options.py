"""How drains and rebalances are asked to move servers, in the same words."""

from __future__ import annotations

from typing import Annotated

import typer

from moorage.cli import durations
from moorage.cli.errors import CommandError

Live = Annotated[bool, typer.Option("--live", help="Move only what can be moved while it runs.")]
Cold = Annotated[bool, typer.Option("--cold", help="Stop what runs, and start it elsewhere.")]
Auto = Annotated[
    bool, typer.Option("--auto", help="Live where that is possible, cold otherwise: the default.")
]
Deadline = Annotated[
    str | None,
    typer.Option(help="When to give up what has not begun to move: 90s, 30m, 2h, 1d.", show_default=False),
]
Parallel = Annotated[int, typer.Option(min=1, max=1000, help="How many servers move at the same time.")]
Detach = Annotated[bool, typer.Option("--detach", help="Don't wait: conductors go on by themselves.")]


def way_of(*, live: bool, cold: bool, auto: bool) -> str:
    if live + cold + auto > 1:
        raise CommandError("--live, --cold and --auto exclude each other")
    return "live" if live else "cold" if cold else "auto"


def seconds(deadline: str | None) -> dict[str, int]:
    """As the API takes a deadline."""
    return {} if deadline is None else {"deadline_seconds": durations.seconds(deadline, "a deadline")}
