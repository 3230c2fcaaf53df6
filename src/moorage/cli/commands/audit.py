"""`moorage audit`: all that exists twice, compared; what differs, since when, and what a repair would do."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from moorage.cli import service
from moorage.cli.errors import CommandError
from moorage.cli.options import Cloud, Data, Json
from moorage.cli.service import ServiceType
from moorage.compute.audits.audit import CheckName, Repair, Stage
from moorage.core.clock import utcnow

INCOMPLETE, DIFFERENT = 3, 7
"""Exit codes, the same as of `moorage-manage placement sync_aggregates`."""
_PAUSE = 0.5
_PATIENCE = 60.0
"""Seconds after which an audit should have been begun."""


class ShownAudit(msgspec.Struct):
    id: str
    stage: Stage
    at_check: str
    done: int
    total: int
    failures: dict[str, str]


class ShownFinding(msgspec.Struct):
    check: str
    sentence: str
    since: datetime
    remedy: str
    repaired: bool
    error: str


class ShownFindings(msgspec.Struct):
    """As the Compute API gives them."""

    audit: ShownAudit
    findings: list[ShownFinding]

    def code(self) -> int:
        if self.audit.failures:
            return INCOMPLETE
        return 0 if all(finding.repaired for finding in self.findings) else DIFFERENT


def audit(
    repair: Annotated[
        bool, typer.Option("--repair", help="Do what is said, instead of only saying it.")
    ] = False,
    only: Annotated[
        list[CheckName] | None,
        typer.Option(help="Make only this check; may be given more than once.", show_default=False),
    ] = None,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Compare all that exists twice, and tell what differs, since when, and what a repair would do.

    A conductor does it. What it finds for the first time it looks at again after a while, since it may be
    what is merely under way: [conductor] audit_grace. Nothing is changed without --repair.

    Exit codes: 0 nothing differs, or everything was repaired; 3 a check could not be made; 7 something
    differs.

    Example: moorage audit --only allocations --only quotas
    """
    asked = {
        "only": [name.value for name in only or ()],
        "repair": (Repair.ALL if repair else Repair.NOTHING),
    }
    answer = service.put_to("/moorage-audits", {"audit": asked}, cloud, data, ServiceType.COMPUTE)
    shown = _followed(msgspec.json.decode(answer, type=ShownFindings), cloud, data, as_json)
    if not as_json:
        for line in told(msgspec.json.decode(shown, type=ShownFindings)):
            typer.echo(line)
    else:
        typer.echo(shown)
    raise typer.Exit(msgspec.json.decode(shown, type=ShownFindings).code())


def _followed(begun: ShownFindings, cloud: str | None, data: Path, as_json: bool) -> bytes:
    """With a progress bar for somebody who looks; the last answer."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    shown = not as_json and sys.stderr.isatty()
    path, deadline = f"/moorage-audits/{begun.audit.id}", time.monotonic() + _PATIENCE
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        task = progress.add_task("waiting", total=None)
        while True:
            answer = service.patiently(lambda: service.ask(path, "", cloud, data, ServiceType.COMPUTE))
            now = msgspec.json.decode(answer, type=ShownFindings).audit
            if now.stage is Stage.DONE:
                return answer
            if now.stage is Stage.WAITING and time.monotonic() > deadline:
                raise CommandError(f"no conductor has begun with audit {now.id}: is one running?")
            named = f"{now.stage.value} {now.at_check}".strip()
            progress.update(task, description=named, completed=now.done, total=now.total or None)
            time.sleep(_PAUSE)


def told(shown: ShownFindings) -> Iterator[str]:
    for finding in shown.findings:
        yield f"{finding.check}: {finding.sentence}; since {_ago(finding.since)}; {_remedy(finding)}"
    for check, reason in sorted(shown.audit.failures.items()):
        yield f"{check}: could not be checked: {reason}"
    left = sum(not finding.repaired for finding in shown.findings)
    mended = len(shown.findings) - left
    yield f"{left} differences{f', {mended} repaired' if mended else ''}."


def _remedy(finding: ShownFinding) -> str:
    if finding.repaired:
        return f"repaired: {finding.remedy}"
    if finding.error:
        return f"the repair ({finding.remedy}) failed: {finding.error}"
    return f"a repair would: {finding.remedy}" if finding.remedy else "no repair: judge for yourself"


def _ago(since: datetime) -> str:
    seconds = max(0, int((utcnow() - since).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
