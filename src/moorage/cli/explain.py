"""`moorage explain`: the story of where a server went, or why it went nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from moorage.cli.errors import CommandError
from moorage.cli.options import Cloud, Data, Json
from moorage.cli.service import Service, ask
from moorage.scheduler.story import story
from moorage.scheduler.trace import Trace


class Decision(msgspec.Struct):
    """One decision as the Compute API tells it."""

    attempt: int
    created_at: str
    trace: Trace


class Decisions(msgspec.Struct):
    server_id: str
    traces: list[Decision]


def explain(
    server: Annotated[str, typer.Argument(help="The server, by its UUID.")],
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Tell how it was decided where a server goes: what was asked, what was passed over, what was taken.

    Example: moorage explain 7a1b6b0e-6d0c-4a52-8f0e-0f0a3c9b8d11
    """
    answer = ask(f"/servers/{server}/moorage-trace", "", cloud, data, Service.COMPUTE)
    if as_json:
        typer.echo(answer)
        return
    decisions = msgspec.json.decode(answer, type=Decisions).traces
    if not decisions:
        raise CommandError(f"nothing has been decided about server {server} yet")
    for decision in decisions:
        typer.echo(f"Decision of {decision.created_at}, attempt {decision.attempt}:")
        typer.echo(story(decision.trace) + "\n")
