"""What the two ways to get machines cost an agent, of a fleet that ten hosts share: `node_selection`.

Example: python -m bench.fleet.ways --nodes 100000 --hosts 10
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from keystoneauth1 import adapter, session
from keystoneauth1.noauth import NoAuth

from moorage.drivers.ironic.api.client import IronicClient
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations.choosing import ChoosingDriver
from moorage.drivers.ironic.reservations.reserving import ReservingDriver
from moorage.drivers.ironic.settings import IronicSettings
from tests.support.processes import free_port, port_is_open, start_service

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_WAYS: dict[str, tuple[type[ReservingDriver], bool]] = {
    "scheduler": (ChoosingDriver, False),
    "reservation": (ReservingDriver, False),
    "reservation, shared_capacity": (ReservingDriver, True),
}


@app.command(help=__doc__)
def main(
    nodes: Annotated[int, typer.Option(help="Machines of the partition.")] = 100_000,
    hosts: Annotated[int, typer.Option(help="Hosts that share them.")] = 10,
    way: Annotated[str, typer.Option(help="One of the ways; empty for all, each in a process.")] = "",
    port: Annotated[int, typer.Option(help="Of the simulated Ironic that runs.")] = 0,
) -> None:
    if way:
        _measure(way, hosts, port)
        return
    found = free_port()
    command = [sys.executable, "-m", "bench.fleet.simulated_ironic", str(found), str(nodes)]
    path = {"PYTHONPATH": os.getcwd()}
    ironic = start_service(
        command, found, Path(os.devnull), path, ready=lambda: port_is_open(found), timeout=180
    )
    try:
        for each in _WAYS:
            again = [sys.executable, "-m", "bench.fleet.ways", "--way", each, "--hosts", str(hosts)]
            subprocess.run([*again, "--port", str(found)], check=True)
    finally:
        ironic.kill()


def _measure(way: str, hosts: int, port: int) -> None:
    kind, shared = _WAYS[way]
    link = adapter.Adapter(session.Session(NoAuth()), endpoint_override=f"http://127.0.0.1:{port}")
    settings = IronicSettings(shared_capacity=shared)
    driver = kind(IronicClient(link), Partition(), "host-0", settings)
    members = [f"host-{number}" for number in range(hosts)]

    def look() -> None:
        driver.look()
        eligible = driver.eligible()
        driver.keep(driver.share("host-0", members) & eligible.keys())
        driver.nodes()

    cold, again = _processor_time(look), _processor_time(look)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    said = len(driver.nodes())
    print(f"{way}: first look {cold:.2f} s, the next {again:.3f} s, {said} providers a host, {memory} MiB")


def _processor_time(work: Callable[[], None]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


if __name__ == "__main__":
    app()
