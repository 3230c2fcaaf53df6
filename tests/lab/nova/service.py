"""Start Nova: its API, scheduler, conductor, and a compute service for each host."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from openstack.connection import Connection

from tests.lab.nova import settings
from tests.lab.nova.pristine import NOVA, new_databases
from tests.lab.openstack.service import OpenStack
from tests.lab.wsgi import serve
from tests.support import forked_programs, rabbitmq
from tests.support.postgres import Postgres
from tests.support.processes import NotReadyError, Service, free_port, start_service, wait_until
from tests.support.profiles import Settings, ini

MICROVERSION = "2.96"
VARIABLES = {"OS_NOVA_DISABLE_EVENTLET_PATCHING": "true", "PYTHONWARNINGS": "ignore"}
"""Native threads."""
PATIENCE = 180.0
_IMPORTS = (
    *("nova.cmd.compute", "nova.cmd.conductor", "nova.cmd.manage", "nova.cmd.scheduler"),
    *("nova.virt.fake", "nova.api.openstack.compute.routes", "nova.api.openstack.wsgi_app", "nova.api.auth"),
    "keystonemiddleware.auth_token",
    *("oslo_messaging._drivers.impl_rabbit", "kombu.transport.pyamqp", "oslo_db.sqlalchemy.enginefacade"),
    *("psycopg2", "sqlalchemy.dialects.postgresql.psycopg2", "openstack.connection"),
)
"""What its services take a good part of their start for: a Nova has five, and two live side by side. Not its
managers, which look at their configuration when they are imported, nor gunicorn, which looks where it is."""


_CONTROL = ("api", "scheduler", "conductor")


class StartCompute(Protocol):
    def __call__(self, directory: Path, *, host: str) -> Service:
        """Start `nova-compute` for a host; `compute.conf` is there in the directory."""


@dataclass
class Nova:
    """A running Nova, asked as its administrator."""

    directory: Path
    url: str
    connection: Connection
    computes: dict[str, Service]
    control: dict[str, Service] = field(default_factory=dict)
    """What does not belong to a host, by name: its API is `api`."""

    @property
    def api(self) -> Any:
        return self.connection.compute

    def manage(self, *command: str) -> subprocess.CompletedProcess[str]:
        """`nova-manage`, as an operator runs it: what it leaves with is part of its answer."""
        files = ("--config-file", self.directory / "nova.conf", "--log-file", self.directory / "manage.log")
        return subprocess.run(
            [str(part) for part in (NOVA.bin() / "nova-manage", *files, *command)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **VARIABLES},
        )

    def logs(self) -> str:
        """The ends of all logs, for who wants to know why something went wrong."""
        files = sorted(self.directory.glob("*.log"))
        return "\n".join(f"== {file.name}\n{file.read_text(errors='replace')[-4000:]}" for file in files)


@contextmanager
def running(
    directory: Path,
    database: Postgres,
    lab: OpenStack,
    placement: str,
    hosts: Sequence[str],
    *,
    port: int = 0,
    start_compute: StartCompute | None = None,
    more: Settings | None = None,
) -> Iterator[Nova]:
    """A new Nova with these hosts; at the URL `placement`, the token `admin` is an administrator's.

    `port` is its API's, if others know it already; `more` are sections that all its services have beside the
    usual ones. Hosts are simulated, unless it is said how their service is started.
    """
    directory.mkdir(parents=True)
    forked_programs.share(NOVA.bin(), VARIABLES, *_IMPORTS)
    port, start_compute = port or free_port(), start_compute or partial(_start, name="compute")
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor())
        databases = pool.submit(new_databases, database, f"nova_{port}")
        bus = stack.enter_context(rabbitmq.room()).url
        shutil.copy(NOVA.bin().parent / "etc/nova/api-paste.ini", directory)
        common = settings.nova(directory, bus, placement, lab.keystone, lab.moorage)
        for section, told in (more or {}).items():
            common[section] = {**common.get(section, {}), **told}
        (directory / "compute.conf").write_text(ini(common))
        (directory / "nova.conf").write_text(ini({**common, **settings.databases(databases.result())}))
        begun = [
            pool.submit(_serve_api, directory, port),
            *(pool.submit(_start, directory, name=name) for name in ("scheduler", "conductor")),
            *(pool.submit(start_compute, directory, host=host) for host in hosts),
        ]
        for future in begun:
            if future.exception() is None:
                stack.callback(future.result().kill)
        computes = dict(zip(hosts, (future.result() for future in begun[3:]), strict=True))
        for future in begun:
            future.result()
        url = f"http://127.0.0.1:{port}/v2.1"
        address = {"compute_endpoint_override": url}
        connection = lab.connect(lab.keystone.admin, compute_default_microversion=MICROVERSION, **address)
        control = {name: begun[number].result() for number, name in enumerate(_CONTROL)}
        nova = Nova(directory, url, connection, computes, control)
        try:
            wait_until(partial(_ready, nova, len(hosts)), "Nova's hosts", PATIENCE)
        except NotReadyError as error:
            raise NotReadyError(f"{error}\n{nova.logs()}") from None
        yield nova


def start_again(nova: Nova, start_compute: StartCompute, port: int) -> None:
    """All that `running` has started and somebody has stopped; `port` is its API's."""
    for name in ("conductor", "scheduler"):
        nova.control[name] = _start(nova.directory, name=name)
    nova.control["api"] = _serve_api(nova.directory, port)
    for host in nova.computes:
        nova.computes[host] = start_compute(nova.directory, host=host)
    wait_until(partial(_ready, nova, len(nova.computes)), "Nova's hosts", PATIENCE)


def _ready(nova: Nova, hosts: int) -> bool:
    """Hosts are listed once the scheduler has found which cell they are in."""
    time.sleep(0.3)
    services = [service for service in nova.api.services() if service.state == "up"]
    return len(services) == hosts + 2 and len(list(nova.api.hypervisors())) == hosts


def _serve_api(directory: Path, port: int) -> Service:
    own = directory / "api"
    own.mkdir(exist_ok=True)
    variables = {"OS_NOVA_CONFIG_DIR": str(directory), **VARIABLES}
    return serve(NOVA, "nova.wsgi.osapi_compute:application", own, port, variables, threads=8)


def serve_metadata(nova: Nova, port: int) -> None:
    """Its metadata service, which not every Nova needs; ended by who ends the rest."""
    own = nova.directory / "metadata"
    own.mkdir(exist_ok=True)
    variables = {"OS_NOVA_CONFIG_DIR": str(nova.directory), **VARIABLES}
    nova.control["metadata"] = serve(NOVA, "nova.wsgi.metadata:application", own, port, variables)


def _start(directory: Path, *, name: str, host: str = "control") -> Service:
    own = directory / f"{name}-{host}.conf"
    own.write_text(ini({"DEFAULT": {"host": host, "state_path": str(directory / f"{name}-{host}")}}))
    (directory / f"{name}-{host}").mkdir(exist_ok=True)
    common = directory / ("compute.conf" if name == "compute" else "nova.conf")
    command: list[str | Path] = [
        *(NOVA.bin() / f"nova-{name}", "--config-file", common, "--config-file", own)
    ]
    return start_service(command, 0, directory / f"{name}-{host}.log", VARIABLES, ready=lambda: True)
