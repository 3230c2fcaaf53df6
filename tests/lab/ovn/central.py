"""OVN's databases, and what makes flows of what Neutron writes there."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import debian
from tests.support.processes import free_port, start_service


@dataclass(frozen=True)
class OvnCentral:
    """Where its databases listen, as OVN writes it: `tcp:ADDRESS:PORT`."""

    northbound: str
    southbound: str


def install() -> None:
    """`debian.Unavailable` if something is missing that we may not install."""
    debian.install("openvswitch-switch", "ovn-central", "ovn-host")


@contextmanager
def running(directory: Path, address: str) -> Iterator[OvnCentral]:
    """New and empty, on an address that hosts and Neutron reach."""
    install()
    directory.mkdir(parents=True)
    with ExitStack() as stack:
        listening = {name: _database(stack, directory, name, address) for name in ("nb", "sb")}
        northd = [
            "ovn-northd",
            f"--unixctl={directory}/northd.ctl",
            f"--ovnnb-db=unix:{directory}/nb.sock",
            f"--ovnsb-db=unix:{directory}/sb.sock",
        ]
        service = start_service(northd, 0, directory / "northd.log", ready=lambda: True)
        stack.callback(service.stop)
        yield OvnCentral(listening["nb"], listening["sb"])


def _database(stack: ExitStack, directory: Path, name: str, address: str) -> str:
    file, port = directory / f"{name}.db", free_port()
    schema = f"/usr/share/ovn/ovn-{name}.ovsschema"
    subprocess.run(["ovsdb-tool", "create", str(file), schema], check=True, capture_output=True)
    words = [
        "ovsdb-server",
        f"--remote=punix:{directory}/{name}.sock",
        f"--remote=ptcp:{port}:{address}",
        f"--unixctl={directory}/{name}.ctl",
        str(file),
    ]
    socket = directory / f"{name}.sock"
    service = start_service(words, 0, directory / f"{name}.log", ready=socket.exists)
    stack.callback(service.stop)
    control = [f"ovn-{name}ctl", f"--db=unix:{socket}", "--no-leader-only", "init"]
    subprocess.run(control, check=True, capture_output=True)
    return f"tcp:{address}:{port}"
