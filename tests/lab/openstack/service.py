"""Start Neutron and Glance beside a Keystone, and fill them with what a test needs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import requests
from openstack.connection import Connection

from tests.lab.keystone import service as keystone_service
from tests.lab.keystone.service import Keystone, Person
from tests.lab.keystone.settings import REGION
from tests.lab.openstack import settings
from tests.lab.openstack.environment import HERE, OPENSTACK
from tests.lab.openstack.pristine import glance_database, neutron_database
from tests.lab.ovn.central import OvnCentral
from tests.lab.wsgi import serve
from tests.support import postgres
from tests.support.postgres import Postgres
from tests.support.processes import Service, free_port
from tests.support.profiles import ini

_HASTY = {**postgres.HASTY, "synchronous_commit": "off"}
"""Nobody tests what Neutron keeps of a crash of its database."""


@dataclass
class OpenStack:
    """A running Keystone, Neutron and Glance, and those who use them."""

    directory: Path
    ports: Mapping[str, int]
    keystone: Keystone
    neutron: Service
    glance: Service
    moorage: Person
    """The service user that Moorage has."""
    demo: Person
    """An ordinary user."""

    @property
    def hosts_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['hosts']}"

    def connect(self, person: Person, **options: Any) -> Connection:
        """Neutron may close a connection that was idle at the moment when it is used again: ask once more."""
        auth = person.auth(self.keystone.url)
        again: dict[str, Any] = {"network_connect_retries": 3}
        return Connection(auth=auth, region_name=REGION, identity_api_version="3", **again, **options)

    def start_neutron_again(self) -> None:
        self.neutron = _serve_neutron(self.directory / "neutron", self.ports)

    def put_host(self, name: str, **fields: Any) -> None:
        """Simulate a host's layer-2 agent, or change it: see `simulated_hosts.py`."""
        requests.put(f"{self.hosts_url}/hosts/{name}", json=fields, timeout=30).raise_for_status()

    def plug(self, port_id: str, host: str) -> None:
        answer = requests.post(f"{self.hosts_url}/ports/{port_id}/up", params={"host": host}, timeout=30)
        answer.raise_for_status()


@contextmanager
def start(
    directory: Path, services: dict[str, str], ovn: OvnCentral | None = None, page: str = settings.PAGE
) -> Iterator[OpenStack]:
    """All of it, new and empty. `services` are ours, by type, with their URLs: for the catalogue.

    With `ovn`, hosts are real ones; else they are simulated. No list is longer than a `page`.
    """
    ports = {name: free_port() for name in ("neutron", "glance", "hosts")}
    with ExitStack() as stack:
        database = stack.enter_context(postgres.start(_HASTY))
        keystone = keystone_service.start(directory / "keystone", page)
        stack.callback(keystone.stop)
        people = {
            name: keystone.add_person(name, "service", "service", "admin")
            for name in ("neutron", "glance", "moorage")
        }
        ours = {
            "network": f"http://127.0.0.1:{ports['neutron']}",
            "image": f"http://127.0.0.1:{ports['glance']}",
        }
        for kind, url in {**services, **ours}.items():
            keystone.add_service(kind, kind, url)
        beginnings = (
            partial(_glance, directory / "glance", ports, keystone, people["glance"], page, database),
            partial(_neutron, directory / "neutron", ports, keystone, people["neutron"], page, database, ovn),
        )
        with ThreadPoolExecutor() as pool:
            begun = [pool.submit(beginning) for beginning in beginnings]
        for future in begun:  # to be killed: a polite end takes as long as a start
            if future.exception() is None:
                stack.callback(future.result().kill)
        glance, neutron = (future.result() for future in begun)
        demo = keystone.add_person("demo", "member", "demo")
        lab = OpenStack(directory, ports, keystone, neutron, glance, people["moorage"], demo)
        stack.callback(lambda: lab.neutron.kill())
        yield lab


def _glance(
    directory: Path,
    ports: Mapping[str, int],
    keystone: Keystone,
    person: Person,
    page: str,
    database: Postgres,
) -> Service:
    url = f"http://127.0.0.1:{ports['glance']}"
    directory.mkdir()
    for name in ("file", "os_glance_staging_store", "os_glance_tasks_store"):
        (directory / name).mkdir()
    programs = OPENSTACK.bin()
    shutil.copy(programs.parent / "etc/glance/glance-api-paste.ini", directory)
    config = directory / "glance-api.conf"
    database_url = glance_database(database)
    config.write_text(ini(settings.glance(directory, database_url, url, keystone, person, page)))
    variables = {"OS_GLANCE_CONFIG_DIR": str(directory)}
    return serve(
        OPENSTACK, "glance.wsgi.api:application", directory, ports["glance"], variables, path="/versions"
    )


def _neutron(
    directory: Path,
    ports: Mapping[str, int],
    keystone: Keystone,
    person: Person,
    page: str,
    database: Postgres,
    ovn: OvnCentral | None,
) -> Service:
    directory.mkdir()
    programs = OPENSTACK.bin()
    shutil.copy(programs.parent / "etc/neutron/api-paste.ini", directory / "neutron-paste.ini")
    _add_simulations(directory)
    url = neutron_database(database)
    (directory / "neutron.conf").write_text(
        ini(settings.neutron(directory, url, keystone, person, page, ovn))
    )
    return _serve_neutron(directory, ports)


def _add_simulations(directory: Path) -> None:
    """Where Neutron finds them: mechanism drivers are looked up as those of an installed package."""
    for name in ("simulated_hosts", "simulated_switches"):
        shutil.copy(HERE / f"{name}.py", directory)
    package = directory / "simulations-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: simulations\nVersion: 1\n")
    (package / "entry_points.txt").write_text(
        "[neutron.ml2.mechanism_drivers]\nsimulated_switches = simulated_switches:SimulatedSwitches\n"
    )


def _serve_neutron(directory: Path, ports: Mapping[str, int]) -> Service:
    variables = {
        "OS_NEUTRON_CONFIG_DIR": str(directory),
        "OS_NEUTRON_CONFIG_FILES": "neutron.conf",
        "PYTHONPATH": str(directory),
        "SIMULATED_HOSTS_PORT": str(ports["hosts"]),
        "ASGI_WORKERS": "1",  # else what OVN tells is lost: Neutron believes that nobody works
    }
    return serve(
        OPENSTACK, "neutron.wsgi.api:application", directory, ports["neutron"], variables, threads=16
    )
