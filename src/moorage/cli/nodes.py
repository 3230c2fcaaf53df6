"""`moorage nodes`: the machines of an Ironic, and what befell them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer
from oslo_config import cfg
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from moorage.cli import settings
from moorage.cli.options import ConfigFiles, Json
from moorage.cli.workers import require_current_schema
from moorage.compute.hosts import machine_failures
from moorage.compute.hosts.machine_failures import FailureRecord, Quarantine
from moorage.db import engine
from moorage.db.database import Database

_TIME = "%Y-%m-%d %H:%M:%S"


def nodes(
    config_file: ConfigFiles = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Those that failed to deploy or clean, with their history.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List machines that failed: when, at which step, why, and which are in quarantine for it.

    It reads the database that the configuration names.

    Example: moorage nodes --failed --config-file /etc/moorage/moorage.conf
    """
    conf = settings.read(config_file)
    history, kept_out = _failures(conf)
    if as_json:
        typer.echo(msgspec.json.encode(_failed_as_json(history, kept_out)))
        return
    _show_failed(Console(highlight=False, soft_wrap=True), history, kept_out)


def _failures(conf: cfg.ConfigOpts) -> tuple[list[FailureRecord], dict[str, Quarantine]]:
    require_current_schema(conf)
    with Database(engine.from_conf(conf)).snapshot() as connection:
        return machine_failures.history(connection), machine_failures.quarantined(connection)


def _by_machine(history: list[FailureRecord]) -> dict[str, list[FailureRecord]]:
    """The one that failed last comes first."""
    found: dict[str, list[FailureRecord]] = {}
    for failure in history:
        found.setdefault(failure.machine_uuid, []).append(failure)
    return found


def _show_failed(console: Console, history: list[FailureRecord], kept_out: dict[str, Quarantine]) -> None:
    if not history:
        console.print("No machine failed.")
    for machine, told in _by_machine(history).items():
        quarantine = kept_out.get(machine)
        state = f" [red]in quarantine since {quarantine.since:{_TIME}}[/]" if quarantine else ""
        console.print(f"[bold]{machine}[/]{state}")
        table = Table("when", "step", "server", "why", box=box.SIMPLE_HEAD, pad_edge=False)
        for failure in told:
            why = failure.reason if failure.forgiven_at is None else f"(forgiven) {failure.reason}"
            table.add_row(f"{failure.failed_at:{_TIME}}", failure.step, failure.server_uuid, escape(why))
        console.print(table)


def _failed_as_json(history: list[FailureRecord], kept_out: dict[str, Quarantine]) -> list[dict[str, Any]]:
    return [
        {
            "uuid": machine,
            "quarantined_since": kept_out[machine].since if machine in kept_out else None,
            "failures": [
                {
                    "at": failure.failed_at,
                    "step": failure.step,
                    "reason": failure.reason,
                    "host": failure.host,
                    "server": failure.server_uuid or None,
                    "forgiven_at": failure.forgiven_at,
                }
                for failure in told
            ],
        }
        for machine, told in _by_machine(history).items()
    ]
