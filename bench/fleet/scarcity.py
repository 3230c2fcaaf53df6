"""What the two ways to get machines cost when there are fewer of them than servers: `node_selection`.

All servers are asked for at once, of a cloud in one process (`moorage up`) on a simulated Ironic whose
deployments take no time. Counted is what reaches Ironic from then on until each server has a machine or was
refused.

Example: python -m bench.fleet.scarcity --machines 3 --servers 5
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import requests
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from moorage.drivers.ironic.reservations.pool import SEAT
from tests.support import simulated_ironic
from tests.support.moorage import PROGRAMS
from tests.support.processes import free_port, start_service, wait_until
from tests.support.profiles import ini
from tests.support.simulated_ironic import SimulatedIronic

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_HEADERS = {"x-auth-token": "admin", "openstack-api-version": "compute 2.96"}
_NOTHING_ELSE = {f"resources:{name}": "0" for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
_LONGEST = 300.0


@dataclass(frozen=True)
class Way:
    hosts: int
    options: dict[str, str]
    asked: dict[str, str]
    """What a flavor asks for."""


_WAYS = {
    "scheduler, one host": Way(1, {}, {"resources:CUSTOM_GOLD": "1"}),
    "scheduler, two hosts": Way(2, {}, {"resources:CUSTOM_GOLD": "1"}),
    "reservation, two hosts": Way(2, {"node_selection": "reservation"}, {"resources:CUSTOM_GOLD": "1"}),
    "reservation, shared_capacity, two hosts": Way(
        2,
        {"node_selection": "reservation", "shared_capacity": "true"},
        {f"resources:{SEAT}": "1", "resources1:CUSTOM_GOLD": "1"},
    ),
}


@dataclass(frozen=True)
class Figures:
    orders: int
    questions: int
    reservations: int
    active: int
    seconds: float
    """Until the last server has a machine, or was refused."""


class Cloud:
    def __init__(self, url: str) -> None:
        self._url = url

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = requests.request(method, self._url + path, json=body, headers=_HEADERS, timeout=30)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None

    def make_flavor(self, asked: dict[str, str]) -> None:
        flavor = {"id": "gold", "name": "gold", "vcpus": 1, "ram": 64, "disk": 1}
        self.ask("POST", "/v2.1/flavors", {"flavor": flavor})
        specs = {"extra_specs": {**_NOTHING_ELSE, **asked}}
        self.ask("POST", "/v2.1/flavors/gold/os-extra_specs", specs)

    def boot(self, count: int) -> None:
        image = min(self.ask("GET", "/image/v2/images")["images"], key=lambda one: one["min_disk"])["id"]
        wanted = {"name": "one", "flavorRef": "gold", "imageRef": image, "networks": "none"}
        for _ in range(count):
            self.ask("POST", "/v2.1/servers", {"server": wanted})

    def states(self) -> Counter[str]:
        return Counter(one["status"] for one in self.ask("GET", "/v2.1/servers/detail")["servers"])

    def nodes(self) -> int:
        return len(self.ask("GET", "/v2.1/os-hypervisors")["hypervisors"])


@app.command(help=__doc__)
def main(
    machines: Annotated[int, typer.Option(help="Machines of the partition.", min=1)] = 3,
    servers: Annotated[int, typer.Option(help="Servers that are asked for at once.", min=1)] = 5,
) -> None:
    columns = ("", "orders to Ironic", "questions to Ironic", "reservations asked for", "built", "s")
    table = Table(*columns, box=box.SIMPLE_HEAD)
    for name, way in _WAYS.items():
        with simulated_ironic.running() as ironic, tempfile.TemporaryDirectory() as directory:
            for number in range(machines):
                ironic.enrol(f"machine-{number}")
            with _running(Path(directory), ironic, way) as cloud:
                found = _measure(cloud, ironic, way, machines, servers)
        told = (found.orders, found.questions, found.reservations, found.active, f"{found.seconds:.1f}")
        table.add_row(name, *map(str, told))
    Console(width=max(110, Console().width)).print(table)


def _measure(cloud: Cloud, ironic: SimulatedIronic, way: Way, machines: int, servers: int) -> Figures:
    cloud.make_flavor(way.asked)
    reserving = "node_selection" in way.options
    wait_until(lambda: cloud.nodes() >= (way.hosts if reserving else machines), "the machines", _LONGEST)
    time.sleep(5)  # what Placement is told of them follows
    before, began = len(ironic.requests), time.monotonic()
    cloud.boot(servers)
    wait_until(lambda: _is_decided(cloud, servers), "each server to be decided about", _LONGEST)
    seconds = time.monotonic() - began
    made = ironic.requests[before:]
    return Figures(
        orders=sum(method != "GET" for method, _ in made),
        questions=sum(method == "GET" for method, _ in made),
        reservations=made.count(("POST", "/v1/allocations")),
        active=cloud.states()["ACTIVE"],
        seconds=seconds,
    )


def _is_decided(cloud: Cloud, servers: int) -> bool:
    states = cloud.states()
    return states["ACTIVE"] + states["ERROR"] == servers


@contextmanager
def _running(directory: Path, ironic: SimulatedIronic, way: Way) -> Iterator[Cloud]:
    config = directory / "moorage.conf"
    reached = {"auth_type": "none", "endpoint": f"http://127.0.0.1:{ironic.port}"}
    config.write_text(ini({"ironic": {**reached, **way.options}}))
    placement, compute, console = free_port(), free_port(), free_port()
    command: list[str | Path] = [
        *(PROGRAMS / "moorage", "up", "--driver", "ironic", "--config", config, "--auth", "none"),
        *("--data", directory / "data", "--hosts", str(way.hosts), "--placement-port", str(placement)),
        *("--compute-port", str(compute), "--console-port", str(console)),
    ]
    with start_service(command, compute, directory / "up.log", timeout=120):
        yield Cloud(f"http://127.0.0.1:{compute}")


if __name__ == "__main__":
    app()
