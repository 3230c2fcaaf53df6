"""`moorage up` with a small simulated fleet, as a test's cloud."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from openstack.config import OpenStackConfig
from openstack.connection import Connection

from tests.support.processes import free_port, port_is_open, start_service

MOORAGE = Path(sys.executable).parent / "moorage"


@dataclass(frozen=True)
class Embedded:
    clouds_file: Path
    compute: str
    placement: str

    def connect(self) -> Connection:
        """openstacksdk, with the configuration that was left for it and nothing else."""
        found = OpenStackConfig(config_files=[str(self.clouds_file)], load_envvars=False)
        return Connection(config=found.get_one("moorage"))


@contextmanager
def embedded(directory: Path, auth: str = "basic", hosts: int = 3) -> Iterator[Embedded]:
    data, placement, compute = directory / "data", free_port(), free_port()
    command: list[str | Path] = [
        *(MOORAGE, "up", "--data", data, "--auth", auth, "--hosts", str(hosts)),
        *("--placement-port", str(placement), "--compute-port", str(compute)),
    ]
    with start_service(command, compute, directory / "up.log", ready=lambda: port_is_open(compute)):
        yield Embedded(data / "clouds.yaml", f"http://127.0.0.1:{compute}", f"http://127.0.0.1:{placement}")
