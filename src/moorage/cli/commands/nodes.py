"""`moorage nodes`: the machines of an Ironic, and what befell them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
from oslo_config import cfg
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from moorage.cli import settings
from moorage.cli.options import ConfigFiles, Json
from moorage.cli.processes.workers import require_fitting_schema
from moorage.compute.hosts import machine_failures
from moorage.compute.hosts.machine_failures import FailureRecord, Quarantine
from moorage.conductor.ownership import machine_report, overlaps
from moorage.conductor.ownership.machine_report import MachineReport, ReportedMachine
from moorage.conductor.ownership.overlaps import Overlap
from moorage.db import engine
from moorage.db.database import Database
from moorage.drivers import installed
from moorage.drivers.machines import MachineState

_DRIVER = "ironic"
_TIME = "%Y-%m-%d %H:%M:%S"
_WIDE = 240
"""UUIDs are there to be copied: a narrow terminal may break lines, but not shorten them."""


def nodes(
    config_file: ConfigFiles = None,
    state: Annotated[
        list[MachineState] | None, typer.Option(help="Those in this state.", show_default=False)
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Those of this conductor group; empty for the unnamed one.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Those that this host owns.")] = None,
    resource_class: Annotated[
        str | None, typer.Option("--class", help="Those of this resource class, as Ironic writes it.")
    ] = None,
    trait: Annotated[
        list[str] | None, typer.Option(help="Those that have this trait.", show_default=False)
    ] = None,
    unserved: Annotated[
        bool, typer.Option("--unserved", help="Those whose partition no host that is up serves.")
    ] = False,
    failed: Annotated[
        bool, typer.Option("--failed", help="Those that failed to deploy or clean, with their history.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option(help="Where a `moorage up` keeps its database.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """List every machine of Ironic, whoever serves it: its state and why, owner, partition, class, traits.

    It asks the Ironic that [ironic] names, and reads the database that the configuration names, or that of
    the `moorage up` with this --data; with --failed only the latter.

    Example: moorage nodes --state maintenance --state "clean failed"
    """
    conf = settings.read(config_file)
    if data is not None:
        conf.set_default("connection", f"sqlite:///{data.absolute() / 'moorage.sqlite'}", group="database")
    console = Console(highlight=False, soft_wrap=True, width=_WIDE)
    if failed:
        history, kept_out = _failures(conf)
        if as_json:
            typer.echo(msgspec.json.encode(_failed_as_json(history, kept_out)))
        else:
            _show_failed(console, history, kept_out)
        return
    report, overlapping = _report(conf)
    wanted = _Filter(state or [], group, host, resource_class, frozenset(trait or ()), unserved)
    found = [one for one in report.machines if wanted.takes(one)]
    if as_json:
        typer.echo(msgspec.json.encode(_as_json(found, report, overlapping)))
    else:
        _show(console, found, report, overlapping)


class _Filter(NamedTuple):
    states: Collection[MachineState]
    group: str | None
    host: str | None
    resource_class: str | None
    traits: frozenset[str]
    unserved: bool

    def takes(self, one: ReportedMachine) -> bool:
        machine = one.machine
        return (
            (not self.states or one.state in self.states)
            and self.group in (None, machine.group)
            and self.host in (None, one.owner)
            and self.resource_class in (None, machine.resource_class)
            and self.traits.issubset(machine.traits)
            and not (self.unserved and one.served)
        )


def _report(conf: cfg.ConfigOpts) -> tuple[MachineReport, list[Overlap]]:
    require_fitting_schema(conf)
    listing = installed.find(_DRIVER).machines
    assert listing is not None
    machines = list(listing(conf))
    down_after = timedelta(seconds=conf.compute.service_down_time)
    with Database(engine.from_conf(conf)).snapshot() as connection:
        return machine_report.make(connection, machines, down_after), overlaps.find(connection, down_after)


def _show(
    console: Console, found: list[ReportedMachine], report: MachineReport, overlapping: list[Overlap]
) -> None:
    columns = ("node", "name", "state", "why", "owner", "group", "shard", "class", "traits", "server")
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False)
    for one in found:
        machine = one.machine
        owner = one.owner or ("nobody yet" if one.served else "served by nobody")
        told = (one.state, one.reason, owner, machine.group, machine.shard, machine.resource_class)
        ends = (" ".join(machine.traits), machine.server_uuid)
        table.add_row(*map(escape, (machine.uuid, machine.name, *told, *ends)))
    console.print(table)
    counts = Counter(one.state for one in found)
    console.print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "no machines")
    for warning in _warnings(found, report, overlapping):
        console.print(f"[yellow]warning[/]: {escape(warning)}")


def _warnings(found: list[ReportedMachine], report: MachineReport, overlapping: list[Overlap]) -> list[str]:
    unserved = sum(not one.served for one in found)
    return [
        *([f"no host that is up serves {unserved} of these machines"] if unserved else []),
        *(f"host {host} serves {served}, which has no machines" for host, served in report.without_nodes),
        *(f"partitions overlap: {overlap}" for overlap in overlapping),
    ]


def _as_json(
    found: list[ReportedMachine], report: MachineReport, overlapping: list[Overlap]
) -> dict[str, Any]:
    return {
        "nodes": [
            {
                "uuid": one.machine.uuid,
                "name": one.machine.name,
                "state": one.state,
                "reason": one.reason,
                "host": one.owner or None,
                "served": one.served,
                "conductor_group": one.machine.group,
                "shard": one.machine.shard,
                "resource_class": one.machine.resource_class,
                "traits": one.machine.traits,
                "server": one.machine.server_uuid or None,
            }
            for one in found
        ],
        "counts": Counter(one.state.value for one in found),
        "warnings": _warnings(found, report, overlapping),
    }


def _failures(conf: cfg.ConfigOpts) -> tuple[list[FailureRecord], dict[str, Quarantine]]:
    require_fitting_schema(conf)
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
