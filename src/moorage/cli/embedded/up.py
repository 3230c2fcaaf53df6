"""`moorage up`: everything in one process, with nothing to prepare."""

from __future__ import annotations

import os
import random
import resource
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from moorage.core import log

if TYPE_CHECKING:
    from moorage.cli.embedded.embedded import Embedded


class Auth(StrEnum):
    NONE = "none"
    BASIC = "basic"
    KEYSTONE = "keystone"


def up(
    data: Annotated[Path, typer.Option(help="Where the database and the credentials are kept.")] = Path(
        "data"
    ),
    placement_port: Annotated[
        int, typer.Option(min=1, max=65535, help="The port of the Placement API.")
    ] = 8778,
    compute_port: Annotated[int, typer.Option(min=1, max=65535, help="The port of the Compute API.")] = 8774,
    console_port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            help="The port of the proxy to servers' consoles. [default: 6080, or any that is free]",
            show_default=False,
        ),
    ] = None,
    driver: Annotated[
        str | None,
        typer.Option(
            help="What servers run on: `libvirt` for real ones on this machine, `ironic` for machines "
            "of the Ironic that [ironic] in --config names. "
            "[default: what [agent] driver says, else simulated ones]",
            show_default=False,
        ),
    ] = None,
    hosts: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Hosts that servers run on. [default: 4 simulated ones, or 1]",
            show_default=False,
        ),
    ] = None,
    listen: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    auth: Annotated[
        Auth | None,
        typer.Option(
            help="Who checks callers; `none` works on loopback only. [default: basic]", show_default=False
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="A configuration file (oslo.config).", show_default=False)
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Log every request: [log] level = INFO.")
    ] = False,
) -> None:
    """Run all services in this process, until Ctrl-C or SIGTERM.

    Example: moorage up --data data --auth none

    Real servers: moorage doctor --driver libvirt && moorage up --driver libvirt

    Bare metal: moorage up --driver ironic --config ironic.conf
    """
    from moorage.cli.embedded.embedded import (  # all services, which the other commands don't need
        Embedded,
        UpOptions,
    )

    _stay_on_one_processor()
    _allow_many_files()
    log.set_up("INFO" if verbose else "WARNING")  # until the configuration is read
    embedded = Embedded(
        UpOptions(
            data.absolute(),
            listen,
            placement_port,
            compute_port,
            console_port,
            driver,
            hosts,
            auth.value if auth is not None else None,
            config,
            verbose,
        )
    )
    console = Console(highlight=False, soft_wrap=True)
    embedded.run(on_ready=lambda: _greet(console, embedded))
    console.print("Moorage has stopped.")


def _greet(console: Console, embedded: Embedded) -> None:
    console.print("[bold green]Moorage is up.[/]")
    console.print(f"  Compute         {embedded.endpoints.compute}/v2.1")
    console.print(f"  Placement       {embedded.endpoints.placement}")
    console.print(f"  consoles        {embedded.conf.consoles.base_url}")
    console.print(f"  database        {embedded.database}")
    console.print(f"  authentication  {embedded.conf.auth.strategy}")
    if embedded.clouds_file is not None:
        console.print(f"  client access   {embedded.clouds_file} (cloud: moorage)")
        console.print("\nTry next, in another terminal:")
        console.print(
            "  python3 -m venv client && client/bin/pip install python-openstackclient osc-placement",
        )
        console.print(
            f"  export OS_CLIENT_CONFIG_FILE={embedded.clouds_file} OS_CLOUD=moorage "
            "PATH=$PWD/client/bin:$PATH",
        )
        for step in _first_steps(embedded):
            console.print(f"  {step}", markup=False)
        console.print("  openstack server list")
        console.print("  openstack resource provider list")
        if not embedded.first_steps:
            console.print(f'  {sys.argv[0]} placement why "resources=VCPU:4" --data {embedded.plan.data}')
    console.print("\nStop it with Ctrl-C.")


def _first_steps(embedded: Embedded) -> list[str]:
    """How to boot the first server."""
    said = embedded.first_steps
    if not said:
        return [f"openstack server create --flavor m1.tiny --image {embedded.example_image} --wait one"]
    return [
        step.format(moorage=sys.argv[0], config=embedded.plan.config or "FILE", data=embedded.plan.data)
        for step in said
    ]


def _stay_on_one_processor() -> None:
    """Threads of one interpreter run one at a time. Spread over processors, they spend much of their time on
    handing over, which the system does more cheaply where they are together."""
    if hasattr(os, "sched_setaffinity"):  # on Linux; for threads that begin later, too
        os.sched_setaffinity(0, {random.choice(sorted(os.sched_getaffinity(0)))})


def _allow_many_files() -> None:
    """Connections and the simulated hosts' journals are files, too; a shell allows 1024 unless asked."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if most == resource.RLIM_INFINITY else min(65_536, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
