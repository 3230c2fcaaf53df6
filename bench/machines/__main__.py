"""Boot and move real guests, through Moorage and with `virsh` alone by turns, on this machine, now."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from bench.machines import measures
from bench.machines.alone import Alone
from bench.machines.measures import Boots, Moves
from tests.support import guest_deployment
from tests.support.guest_deployment import GuestDeployment, GuestShape
from tests.support.guest_image import guest_image

EXAMPLE = "Example: python -m bench.machines --rounds 5 --servers 4 --moves 5 --json figures.json"
_PROPERTIES = {"hw_cdrom_bus": "scsi", "hw_scsi_model": "virtio-scsi"}
_FLAVOR = {"id": "guest", "name": "guest", "vcpus": 1, "ram": 128, "disk": 1}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(help=f"{__doc__}\n\n{EXAMPLE}")
def main(
    rounds: Annotated[int, typer.Option(help="How often both sides have their turn.")] = 5,
    servers: Annotated[int, typer.Option(help="How many boot in a turn.")] = 4,
    moves: Annotated[int, typer.Option(help="How many live migrations each side makes; 0 for none.")] = 5,
    output: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    console = Console(width=max(140, Console().width))
    load = os.getloadavg()[0]
    if load > 1:
        console.print(f"The machine is busy (load {load:.1f}): believe ratios and processor time only.")
    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as made:
        directory = Path(made)
        directory.chmod(0o755)
        instances = directory / "lab" / "shared" / "instances"
        instances.mkdir(parents=True)
        options = {"instances_path": str(instances), "live_migration_unsafe": "true"}
        with guest_deployment.running(directory, GuestShape(options=tuple(options.items()))) as cloud:
            figures = _measure(cloud, instances, rounds, servers, moves)
    figures["load"] = [load, os.getloadavg()[0]]
    console.print(_table(figures), soft_wrap=True)
    if output is not None:
        output.write_text(json.dumps(figures, indent=1) + "\n")


def _measure(
    cloud: GuestDeployment, instances: Path, rounds: int, servers: int, moves: int
) -> dict[str, Any]:
    home, away = cloud.lab.hosts.values()
    pattern = cloud.boot(home.name)
    cloud.wait_for(pattern, "ACTIVE")
    alone = Alone.like(cloud.lab, home, pattern, instances)
    through, by_hand = Boots(), Boots()
    for _ in range(rounds):
        for server in measures.boot_through(cloud, home.name, servers, through):
            cloud.delete(server)
        for name in measures.boot_alone(alone, home, servers, by_hand):
            alone.delete(home, name)
    ours, theirs = Moves(), Moves()
    twin = alone.boot(home)
    for number in range(moves):
        source, target = (home, away) if number % 2 == 0 else (away, home)
        measures.move_through(cloud, pattern, source.name, target.name, ours)
        measures.move_alone(alone, twin, source, target, theirs)
    alone.delete(home if moves % 2 == 0 else away, twin)
    cloud.delete(pattern)
    return {
        "boots": {"moorage": asdict(through), "virsh": asdict(by_hand)},
        "moves": {"moorage": asdict(ours), "virsh": asdict(theirs)},
        "a_minute": [through.a_minute, by_hand.a_minute],
        "agent": (through.own + through.commands) / through.count,
        "by_hand": by_hand.own / by_hand.count,
        "control_plane": through.control_plane,
        "guest": _whole_boot(cloud, instances),
        "downtime": [ours.downtime, theirs.downtime] if moves else None,
        "job": [ours.job, theirs.job] if moves else None,
        "total": [ours.total, theirs.total] if moves else None,
    }


def _whole_boot(cloud: GuestDeployment, instances: Path) -> float:
    """Processor seconds of the small guest, until it is ready."""
    image = cloud.add_image(guest_image().disk, **_PROPERTIES)
    cloud.ask("POST", "/v2.1/flavors", {"flavor": _FLAVOR})
    server = cloud.boot(imageRef=image, flavorRef="guest")
    host = cloud.lab.hosts[cloud.wait_for(server, "ACTIVE")["OS-EXT-SRV-ATTR:host"]]
    return measures.guest_boot(host, server, instances / server / "console.log")


def _table(figures: dict[str, Any]) -> Table:
    table = Table(box=box.MARKDOWN)
    for heading in ("measure", "Moorage", "virsh alone", "ratio"):
        table.add_column(heading, justify="left" if heading == "measure" else "right")
    rows = [
        ("boots a minute", "{:.1f}", figures["a_minute"]),
        ("processor time a boot: agent / virsh", "{:.3f} s", [figures["agent"], figures["by_hand"]]),
        ("live migration: downtime", "{:.0f} ms", figures["downtime"]),
        ("live migration: libvirt's job", "{:.0f} ms", figures["job"]),
        ("live migration: all of it", "{:.2f} s", figures["total"]),
    ]
    for name, form, pair in rows:
        if pair is not None:
            table.add_row(name, *(form.format(one) for one in pair), f"{pair[0] / pair[1]:.2f}")
    share = figures["control_plane"] / figures["guest"]
    table.add_row(
        "processor time a boot: all of the control plane", f"{figures['control_plane']:.3f} s", "", ""
    )
    table.add_row("processor time of a guest's whole boot", f"{figures['guest']:.1f} s", "", f"{share:.1%}")
    return table


if __name__ == "__main__":
    app()
