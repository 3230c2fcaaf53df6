"""`moorage-manage placement sync_aggregates`: make Placement agree with our host aggregates."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
import typer
from oslo_config import cfg
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from moorage.cli import settings
from moorage.cli.errors import Commands, expected, sentence
from moorage.cli.options import Json
from moorage.cli.processes import workers
from moorage.compute.aggregates import aggregates
from moorage.compute.aggregates.mirror import PROBLEMS
from moorage.compute.aggregates.reconciliation import NO_HOST, Findings, MembershipChange, Reconciliation
from moorage.compute.aggregates.reconciliation import Progress as Report
from moorage.core import log
from moorage.db import engine
from moorage.db.database import Database
from moorage.placement.client.connect import connect, is_configured
from moorage.placement.client.contract import PlacementClient
from moorage.placement.client.local import LocalPlacement
from moorage.placement.service import PlacementService, PlacementSettings

NOT_RUN = 1
INCOMPLETE = 3
HOSTS_WITHOUT_NODES = 5
MISSING_PROVIDERS = 6
DIFFERENT = 7
"""Exit codes; where the reference has one for the same, it is the same."""

placement = Commands(
    help="Keep Placement in step with the Compute side; come over from the reference's, and go back; "
    "say which agent's a tree is.\n\n"
    "Example: moorage-manage placement sync_aggregates --dry-run"
)


@placement.command("sync_aggregates")
def sync_aggregates(
    context: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what would be done. [exit code 7 if anything]")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Name every provider that is changed.")] = False,
    as_json: Json = False,
) -> None:
    """Put every node's provider into the placement aggregates of its host, and out of all others of ours.

    Aggregates in Placement that are not host aggregates are left alone. Safe to run at any time, again, and
    by several at once: what is right already is not written.

    Exit codes: 0 Placement agrees with the host aggregates; 1 the command could not run; 2 wrong usage;
    3 Placement did not answer, or refused, for at least one host; 5 a host has no nodes; 6 a node has no
    provider; 7 differences were found by a dry run. Of several the first that applies: 3, 6, 5, 7.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf placement sync_aggregates --verbose
    """
    log.set_up("ERROR")  # what went wrong is in the summary
    found, names, error = Findings(), dict[str, str](), None
    try:
        conf = settings.read(context.obj)
        workers.require_fitting_schema(conf)
        database = Database(engine.from_conf(conf))
        names = _names(database)
        with _bar(shown=not as_json and sys.stderr.isatty()) as report:
            reconciliation = Reconciliation(database, _client(conf, database))
            reconciliation.run(dry=dry_run, progress=report, findings=found)
        code = exit_code(found, dry_run=dry_run)
    except PROBLEMS as problem:
        error, code = str(problem), INCOMPLETE
    except expected() as problem:
        error, code = sentence(problem), NOT_RUN
    if as_json:
        typer.echo(msgspec.json.encode(_as_json(found, names, error, dry_run, verbose)))
    elif error is None or found.changes:
        for line in _lines(found, names, dry_run, verbose):
            typer.echo(line)
    if error is not None:
        typer.echo(f"error: {error}", err=True)
    raise typer.Exit(code)


def exit_code(found: Findings, *, dry_run: bool) -> int:
    if found.failed_hosts:
        return INCOMPLETE
    if found.missing_providers:
        return MISSING_PROVIDERS
    if found.hosts_without_nodes:
        return HOSTS_WITHOUT_NODES
    return DIFFERENT if dry_run and found.changes else 0


def _client(conf: cfg.ConfigOpts, database: Database) -> PlacementClient:
    """Where [placement_client] names no service, Placement is ours, in the same database."""
    if is_configured(conf):
        return connect(conf)
    return LocalPlacement(PlacementService(database, PlacementSettings.from_conf(conf)))


@contextmanager
def _bar(*, shown: bool) -> Iterator[Report]:
    """A progress bar, for somebody who looks."""
    columns = (TextColumn("providers"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        task = progress.add_task("providers", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _lines(found: Findings, names: Mapping[str, str], dry_run: bool, verbose: bool) -> Iterator[str]:
    for change in found.changes if verbose else ():
        what = [f"+{name}" for name in _named(change.added, names)]
        what += [f"-{name}" for name in _named(change.removed, names)]
        yield f"{change.host or '(no host)'} {change.provider}: {' '.join(what)}"
    counts = f"added: {found.added}, removed: {found.removed}, unchanged: {found.unchanged}"
    yield f"{counts} (a dry run: nothing was written)" if dry_run else counts
    for host in found.hosts_without_nodes:
        yield f"host {host} has no nodes"
    for provider, host in sorted(found.missing_providers.items(), key=lambda item: item[::-1]):
        yield f"host {host}: node {provider} has no provider in Placement"
    for host, reason in sorted(found.failed_hosts.items()):
        yield f"{f'host {host}' if host != NO_HOST else 'providers of no host'} failed: {reason}"


def _as_json(
    found: Findings, names: Mapping[str, str], error: str | None, dry_run: bool, verbose: bool
) -> dict[str, Any]:
    """The same fields in every outcome; with an error, what was done until then."""
    shown: dict[str, Any] = {
        "dry_run": dry_run,
        "error": error,
        "added": found.added,
        "removed": found.removed,
        "unchanged": found.unchanged,
        "hosts_without_nodes": found.hosts_without_nodes,
        "missing_providers": [
            {"host": host, "provider": provider} for provider, host in found.missing_providers.items()
        ],
        "failed_hosts": [{"host": host, "reason": reason} for host, reason in found.failed_hosts.items()],
    }
    if verbose:
        shown["changes"] = [_change(change, names) for change in found.changes]
    return shown


def _change(change: MembershipChange, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "host": change.host,
        "provider": change.provider,
        "added": _named(change.added, names),
        "removed": _named(change.removed, names),
    }


def _names(database: Database) -> dict[str, str]:
    with database.snapshot() as connection:
        return {aggregate.uuid: aggregate.name for aggregate in aggregates.listed(connection)}


def _named(uuids: frozenset[str], names: Mapping[str, str]) -> list[str]:
    """Deleted aggregates have only their UUID left."""
    return sorted(names.get(uuid, uuid) for uuid in uuids)
