"""`moorage ops`: the operations of the ledger: what is stuck, since when and why; and what to do about it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from moorage.cli import durations, service
from moorage.cli.errors import CommandError, Commands
from moorage.cli.options import Cloud, Data, Json
from moorage.cli.service import AwayError, ServiceType

_PATH = "/moorage-operations"
_WIDE = 200
"""A narrow terminal may break lines, but not shorten the sentences."""


class ShownOperation(msgspec.Struct):
    """As the Compute API tells of it."""

    id: int
    kind: str
    step: str
    step_since: str
    state: str
    stuck: str | None
    sentence: str
    host: str | None
    server_id: str
    server_name: str
    project_id: str
    attempt: int
    tries: int
    created_at: str
    leased_by: str | None = None
    leased_until: str | None = None
    cancel_reason: str | None = None
    request_id: str | None = None
    outcome: str | None = None
    error: str | None = None
    steps: list[str] = []
    cancel_refusal: str | None = None
    holds: dict[str, Any] = {}
    events: list[dict[str, Any]] = []


class ShownList(msgspec.Struct):
    operations: list[ShownOperation]
    count: int
    stuck: int
    complete: bool


class ShownOne(msgspec.Struct):
    operation: ShownOperation


ops = Commands(
    help="Operations: what is under way, what is stuck and why; try again, or cancel."
    "\n\nExample: moorage ops list --stuck"
)

Kind = Annotated[str | None, typer.Option(help="Those of this kind, as build or delete.", show_default=False)]
StepName = Annotated[str | None, typer.Option("--step", help="Those at this step.", show_default=False)]
Host = Annotated[str | None, typer.Option(help="Those that are about this host.", show_default=False)]
Server = Annotated[str | None, typer.Option(metavar="UUID", help="Those of this server.", show_default=False)]
OlderThan = Annotated[
    str | None,
    typer.Option(metavar="AGE", help="Those begun longer ago: 90s, 30m, 2h, 1d.", show_default=False),
]
OnlyStuck = Annotated[bool, typer.Option("--stuck", help="Those that don't come forward.")]
Ids = Annotated[
    list[int] | None, typer.Argument(metavar="[ID]...", help="The operations.", show_default=False)
]


def _query(
    kind: str | None, step: str | None, host: str | None, server: str | None, older: str | None, stuck: bool
) -> dict[str, str]:
    asked = {"kind": kind, "step": step, "host": host, "server_id": server}
    query = {name: value for name, value in asked.items() if value is not None}
    if older is not None:
        query["older_than"] = str(durations.seconds(older, "an age"))
    return {**query, "stuck": "true"} if stuck else query


@ops.command("list")
def list_(
    kind: Kind = None,
    step: StepName = None,
    host: Host = None,
    server: Server = None,
    older_than: OlderThan = None,
    stuck: OnlyStuck = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show them again and again, until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.2, help="Seconds in between.")] = 2.0,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """List operations that have not ended, those first that are stuck, each with what it waits for.

    Example: moorage ops list --kind build --host compute-7 --watch
    """
    query = _query(kind, step, host, server, older_than, stuck)

    def ask() -> bytes:
        return service.ask(_PATH, urlencode(query), cloud, data, ServiceType.COMPUTE)

    if as_json:
        typer.echo(ask())
        while watch:
            time.sleep(interval)
            typer.echo(service.patiently(ask))
        return
    console = Console(highlight=False, width=None if watch else _WIDE, soft_wrap=not watch)
    if not watch:
        console.print(_table(ask()))
        return
    shown = _table(ask())
    with Live(shown, console=console, auto_refresh=False) as live:
        while True:
            time.sleep(interval)
            try:
                shown = _table(ask())
                live.update(shown, refresh=True)
            except AwayError as error:  # what was seen last, until somebody answers again
                live.update(Group(shown, f"{datetime.now():%H:%M:%S} {error}"), refresh=True)


def _table(answer: bytes) -> RenderableType:
    found = msgspec.json.decode(answer, type=ShownList)
    columns = ("id", "kind", "step", "since", "age", "host", "server", "stuck", "how it stands")
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for one in found.operations:
        name = f"{one.server_name} {one.server_id}"
        times = (_age(one.step_since), _age(one.created_at))
        told = (str(one.id), one.kind, one.step, *times, one.host or "-", name, one.stuck or "", one.sentence)
        table.add_row(*map(escape, told))
    left = "" if found.complete else f"; only {len(found.operations)} are shown"
    return Group(table, f"{found.count} operations, {found.stuck} of them stuck{left}")


def _age(moment: str) -> str:
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(moment).replace(tzinfo=UTC)).total_seconds())
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    if days:
        return f"{days}d{hours % 24:02}h"
    return f"{hours}h{minutes % 60:02}m" if hours else f"{minutes}m{seconds % 60:02}s"


@ops.command()
def show(
    operation: Annotated[int, typer.Argument(help="The operation, by its id.")],
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Show an operation: its steps and attempts, what it holds, who is at it, and its request's id.

    The id of its request is in every line of the logs that is about it.

    Example: moorage ops show 4711
    """
    answer = service.ask(f"{_PATH}/{operation}", "", cloud, data, ServiceType.COMPUTE)
    if as_json:
        typer.echo(answer)
        return
    for name, value in _told(msgspec.json.decode(answer, type=ShownOne).operation):
        typer.echo(f"{name:<12}{value}")


def _told(one: ShownOperation) -> list[tuple[str, str]]:
    steps = " ".join(f"[{step}]" if step == one.step else step for step in one.steps)
    allocations = one.holds.get("allocations")
    held = [
        f"host {one.holds['host']}, node {one.holds['node']}" if one.holds.get("host") else "no host",
        f"ports {' '.join(one.holds['ports'])}" if one.holds.get("ports") else "no ports",
        one.holds.get("trouble")
        or "; ".join(f"{who} has {_amounts(what)}" for who, what in (allocations or {}).items())
        or "nothing in Placement",
    ]
    lines = [
        ("operation", f"{one.id}, {one.kind} of server {one.server_name} ({one.server_id})"),
        ("project", one.project_id),
        ("request", one.request_id or "none: it began by itself"),
        ("begun", f"{one.created_at} ({_age(one.created_at)} ago)"),
        ("steps", steps or one.step),
        ("at step", f"{_age(one.step_since)}, attempt {one.attempt}, {one.tries} tries in a row failed"),
        ("stands", f"it {one.sentence}"),
        ("stuck", one.stuck or "no"),
        ("lease", f"{one.leased_by} until {one.leased_until}" if one.leased_by else "nobody"),
        ("holds", held[0]),
        *(("", line) for line in held[1:]),
        ("cancel", f"no: {one.cancel_refusal}" if one.cancel_refusal else one.cancel_reason or "possible"),
    ]
    for event in one.events:
        ended = f"{event.get('finish_time', '')} {event['event']}: {event.get('result')}"
        lines.append(("event", f"{ended} {event.get('details') or ''}".rstrip()))
    return lines


def _amounts(held: dict[str, dict[str, int]]) -> str:
    """Provider by provider."""
    return ", ".join(
        f"{' '.join(f'{amount} {name}' for name, amount in amounts.items())} of {provider}"
        for provider, amounts in held.items()
    )


@ops.command()
def retry(
    operations: Ids = None,
    kind: Kind = None,
    step: StepName = None,
    host: Host = None,
    server: Server = None,
    older_than: OlderThan = None,
    stuck: OnlyStuck = False,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Have operations tried now, with all their tries before them: those named, or those that options choose.

    An agent that has not answered is asked again.

    Example: moorage ops retry --stuck --host compute-7
    """
    query = _query(kind, step, host, server, older_than, stuck)
    _act(operations or [], query, {"retry": None}, "is tried now", cloud, data, as_json)


@ops.command()
def cancel(
    operations: Ids = None,
    kind: Kind = None,
    step: StepName = None,
    host: Host = None,
    server: Server = None,
    older_than: OlderThan = None,
    stuck: OnlyStuck = False,
    reason: Annotated[
        str | None, typer.Option(help="Why; users read it in the server's fault.", show_default=False)
    ] = None,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Cancel operations: those named, or those that options choose.

    Each goes the way back that its kind declares, so that nothing is left behind: a build ends in ERROR and
    holds nothing, a move leaves the server where it was. What can't be cancelled any more is refused, with
    the reason, and the others are cancelled.

    Example: moorage ops cancel 4711 4712 --reason "rack 7 burns"
    """
    query = _query(kind, step, host, server, older_than, stuck)
    wish = {"cancel": None if reason is None else {"reason": reason}}
    _act(operations or [], query, wish, "is to be cancelled", cloud, data, as_json)


def _act(
    named: Sequence[int],
    query: dict[str, str],
    wish: dict[str, Any],
    done: str,
    cloud: str | None,
    data: Path,
    as_json: bool,
) -> None:
    """One by one, each judged by itself; it fails if one was refused."""
    if bool(named) == bool(query):
        raise CommandError("name operations by their ids, or choose some by options such as --stuck")
    answers = []
    for operation_id in named or _chosen(query, cloud, data):
        try:
            service.put_to(f"{_PATH}/{operation_id}/action", wish, cloud, data, ServiceType.COMPUTE)
            refusal = None
        except CommandError as error:
            refusal = str(error)
        answers.append({"id": operation_id, "refusal": refusal})
        if not as_json:
            typer.echo(f"{operation_id} {done}" if refusal is None else f"{operation_id}: {refusal}")
    if as_json:
        typer.echo(msgspec.json.encode(answers))
    elif not answers:
        typer.echo("no operations are chosen")
    if any(answer["refusal"] for answer in answers):
        raise typer.Exit(1)


def _chosen(query: dict[str, str], cloud: str | None, data: Path) -> list[int]:
    answer = service.ask(_PATH, urlencode(query), cloud, data, ServiceType.COMPUTE)
    found = msgspec.json.decode(answer, type=ShownList)
    if not found.complete:
        said = f"{len(found.operations)} of {found.count} operations are chosen: ask again for the others"
        typer.echo(said, err=True)
    return [one.id for one in found.operations]
