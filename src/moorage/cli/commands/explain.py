"""`moorage explain`: the story of where a server went, or why it went nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from oslo_utils.uuidutils import is_uuid_like

from moorage.cli import service
from moorage.cli.errors import CommandError
from moorage.cli.options import Cloud, Data, Json
from moorage.cli.service import ServiceType, ask
from moorage.scheduler.story import story
from moorage.scheduler.trace import Trace


class ShownDecision(msgspec.Struct):
    """One decision as the Compute API tells it."""

    attempt: int
    created_at: str
    trace: Trace
    operation: str | None = None

    def head(self) -> str:
        """When it was made, for what, and how often that had been tried."""
        kind = "" if self.operation is None else f", {self.operation.replace('_', ' ')}"
        return f"Decision of {self.created_at}{kind}, attempt {self.attempt}:"


class Decisions(msgspec.Struct):
    server_id: str
    traces: list[ShownDecision]


def explain(
    server: Annotated[str, typer.Argument(help="The server, by its name or UUID.")],
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Tell how it was decided where a server goes: what was asked, what was passed over, what was taken.

    Example: moorage explain web-1
    """
    uuid = server if is_uuid_like(server) else _uuid_of(server, cloud, data)
    answer = ask(f"/servers/{uuid}/moorage-trace", "", cloud, data, ServiceType.COMPUTE)
    if as_json:
        typer.echo(answer)
        return
    decisions = msgspec.json.decode(answer, type=Decisions).traces
    if not decisions:
        raise CommandError(f"nothing has been decided about server {server} yet")
    for decision in decisions:
        typer.echo(decision.head())
        typer.echo(story(decision.trace) + "\n")


def _uuid_of(name: str, cloud: str | None, data: Path) -> str:
    """Of the one server with this name, in whatever project; a deleted one if no other has it."""
    pattern = f"^{re.escape(name)}$"
    with service.plain_words():
        compute = service.connect(cloud, data).compute
        found = list(compute.servers(all_projects=True, name=pattern))
        found = found or list(compute.servers(all_projects=True, name=pattern, deleted=True))
    if not found:
        raise CommandError(f"there is no server {name}")
    if len(found) > 1:
        lines = [f"  {one.id}  {one.status}  project {one.project_id}" for one in found]
        several = f"{len(found)} servers are called {name}; name one by its UUID:"
        raise CommandError("\n".join([several, *lines]))
    return str(found[0].id)
