"""Count what boots ask of a real Neutron, and how long both phases take, on this machine, now."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Annotated, Any

import requests
import typer
from rich.console import Console
from rich.table import Table

from tests.integration import openstack_site
from tests.integration.openstack_site import Site

EXAMPLE = "Example: python -m bench.ports --servers 10 --json figures.json"

REFERENCE = (
    *("GET networks", "GET quotas", "GET ports", "GET networks/{id}"),  # POST /servers
    *("GET networks", "GET networks/{id}", "POST ports", "PUT ports"),  # on the compute node
    *(
        "GET ports",
        "GET networks",
        "GET floatingips",
        "GET subnets",
        "GET ports",
    ),  # what it remembers of them
)
"""What the reference (nova 34) asks for a server with one network, read from its source: it can't run here.
On a retry it deletes the port and starts over on the next node."""

_CALLS = re.compile(r'moorage_neutron_calls_total\{method="(\w+)",resource="([\w-]+)"\} ([\d.e+]+)')
_PHASE = re.compile(r'moorage_network_phase_seconds_(sum|count)\{phase="(\w+)"\} ([\d.e+-]+)')

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(help=f"{__doc__}\n\n{EXAMPLE}")
def main(
    servers: Annotated[int, typer.Option(help="How many boot, one after the other and then at once.")] = 10,
    output: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    console = Console()
    if os.getloadavg()[0] > 1:
        console.print(f"The machine is busy (load {os.getloadavg()[0]:.1f}): do not trust the times.")
    with (
        tempfile.TemporaryDirectory(prefix="moorage-bench-") as directory,
        openstack_site.running(Path(directory)) as site,
    ):
        network = site.plain_network("plain", "10.10.0.0/16")
        site.delete(site.booted([{"uuid": network.id}]))  # what is remembered of the network
        alone = _measure(site, network.id, servers, at_once=False)
        together = _measure(site, network.id, servers, at_once=True)
    figures = {"one at a time": alone, "all at once": together, "reference": {"calls": len(REFERENCE)}}
    console.print(_table(figures))
    if output is not None:
        output.write_text(json.dumps(figures, indent=1) + "\n")


def _measure(site: Site, network_id: str, count: int, *, at_once: bool) -> dict[str, Any]:
    before = _read(site)
    if at_once:
        site.boot([{"uuid": network_id}], min_count=count)
        booted = [site.settled(server) for server in site.demo.compute.servers()]
    else:
        booted = [site.booted([{"uuid": network_id}]) for _ in range(count)]
    after = _read(site)
    assert all(server.status == "ACTIVE" for server in booted)
    site.delete(*booted)
    calls = {name: (after[name] - before.get(name, 0)) / count for name in after if " " in name}
    return {
        "calls": sum(calls.values()),
        "by kind": {name: number for name, number in sorted(calls.items()) if number},
        **{
            f"{phase} (ms)": 1000 * (after[f"{phase}_sum"] - before[f"{phase}_sum"]) / count
            for phase in ("prepare", "bind")
        },
    }


def _read(site: Site) -> dict[str, float]:
    """Calls by method and resource, and how long phases took, since the start."""
    text = requests.get(f"http://127.0.0.1:{site.ports['compute']}/metrics", timeout=30).text
    calls = {f"{method} {resource}": float(value) for method, resource, value in _CALLS.findall(text)}
    return calls | {f"{phase}_{what}": float(value) for what, phase, value in _PHASE.findall(text)}


def _table(figures: dict[str, dict[str, Any]]) -> Table:
    table = Table(title="A server on one network")
    for heading in ("", "calls a boot", "phase 1 (ms)", "phase 2 (ms)", "which"):
        table.add_column(heading)
    for name, found in figures.items():
        times = [f"{found[key]:.0f}" if key in found else "" for key in ("prepare (ms)", "bind (ms)")]
        kinds = ", ".join(f"{kind} {number:g}" for kind, number in found.get("by kind", {}).items())
        table.add_row(name, f"{found['calls']:.1f}", *times, kinds)
    return table


if __name__ == "__main__":
    app()
