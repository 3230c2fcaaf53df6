"""`moorage doctor`: whether a driver would work on this machine, and what to do if not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape

from moorage.cli import settings
from moorage.core.config import ConfigError
from moorage.drivers import installed
from moorage.drivers.host_check import CheckOutcome, HostCheck

_SIGNS = {
    CheckOutcome.OK: "[green]ok[/]     ",
    CheckOutcome.WARNING: "[yellow]warning[/]",
    CheckOutcome.FAILED: "[red]failed[/] ",
}


def doctor(
    driver: Annotated[
        str | None,
        typer.Option(help="The driver to check for. [default: what [agent] driver says]", show_default=False),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A configuration file (oslo.config).", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Check whether servers would run on this machine, and say what to install if not.

    It changes nothing. The exit status is 1 if something is missing that no server runs without.

    Example: moorage doctor --driver libvirt
    """
    overrides = {} if driver is None else {"agent.driver": driver}
    conf = settings.read([config] if config else None, overrides)
    found = installed.find(conf.agent.driver).check(conf)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        show(Console(highlight=False), found, conf.agent.driver)
    if any(check.outcome is CheckOutcome.FAILED for check in found):
        raise typer.Exit(1)


def show(console: Console, found: list[HostCheck], driver: str) -> None:
    for check in found:
        console.print(f"{_SIGNS[check.outcome]}  {escape(f'{check.name}: {check.found}')}", soft_wrap=True)
        if check.advice:
            console.print(f"         → {escape(check.advice)}", soft_wrap=True)
    if not found:
        console.print(f"The driver {driver} needs nothing of this machine.")


def require(found: list[HostCheck], driver: str) -> None:
    """ConfigError with all that is missing, if no server would run."""
    missing = [check for check in found if check.outcome is CheckOutcome.FAILED]
    if missing:
        lines = [f"  {check.name}: {check.found}\n    → {check.advice}" for check in missing]
        raise ConfigError("\n".join([f"the driver {driver} can't run servers on this machine:", *lines]))
