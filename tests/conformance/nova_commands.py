"""What the official client shows an administrator of a cloud, of Nova's and of ours, and what may differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.conformance.nova_answers import VERSION
from tests.integration.openstack_site import sections
from tests.lab.client.openstack import openstack
from tests.lab.keystone.settings import REGION
from tests.lab.openstack.service import OpenStack
from tests.lab.openstack.settings import credentials
from tests.support import moorage, rabbitmq
from tests.support.moorage import PROGRAMS
from tests.support.processes import free_port, port_is_open, start_service
from tests.support.profiles import ini

Shown = dict[str, Any]
"""By command."""

EXPECTED = {
    "OS-EXT-SRV-ATTR:root_device_name": "it is the same for all servers here",
    "OS-EXT-SRV-ATTR:instance_name of a server without a host": "cells number by themselves",
    "host_status, Host Status": "hosts are down until their agents come",
    "State of a host": "likewise",
    "Updated At of a service": "when it was heard last, which goes on while one looks",
    "Nova's own services": "its scheduler and its conductor are not brought",
}
"""Fields that differ, and why; no other may."""

_LISTS = (
    *("server list --long --all-projects", "flavor list --long --all", "aggregate list --long"),
    *("keypair list", "server group list --long --all-projects", "hypervisor list --long"),
    *("compute service list --long", "server migration list"),
)
_OF_SERVER = ("server show", "server event list --long")
_ALLOCATIONS = "resource provider allocation show"
_SERVERS, _FLAVORS, _AGGREGATES, _KEYS, _GROUPS, _HYPERVISORS, _SERVICES, _ = _LISTS


@dataclass(frozen=True)
class Client:
    """The official one, as an administrator of one cloud."""

    clouds_file: Path

    def __call__(self, command: str) -> Any:
        cloud = "placement" if command.startswith("resource provider") else "compute"
        versions = ("--os-compute-api-version", VERSION, "--os-placement-api-version", "1.39")
        return openstack(self.clouds_file, cloud, *versions, *command.split())

    def read(self) -> Shown:
        """All lists, and each thing in them by itself."""
        lists = {command: self(command) for command in _LISTS}
        return lists | {command: self(command) for command in _single(lists)}


def client_of(clouds_file: Path, lab: OpenStack, compute_url: str, placement_url: str, token: str) -> Client:
    """Neither is in the catalogue; `token` is an administrator's at Placement. (JSON is YAML.)"""
    compute = {
        "auth": lab.keystone.admin.auth(lab.keystone.url),
        "region_name": REGION,
        "identity_api_version": "3",
        "compute_endpoint_override": compute_url,
    }
    placement = {"auth_type": "admin_token", "auth": {"endpoint": placement_url, "token": token}}
    clouds_file.write_text(json.dumps({"clouds": {"compute": compute, "placement": placement}}))
    return Client(clouds_file)


@contextmanager
def client_of_ours(directory: Path, lab: OpenStack, database_url: str) -> Iterator[Client]:
    """Both our APIs on a database, beside the neighbours that the cloud always had."""
    compute, placed = free_port(), free_port()
    with rabbitmq.room() as bus:
        told = {
            **sections(lab),
            "DEFAULT": {"transport_url": bus.url},
            "database": {"connection": database_url},
            "placement_client": {
                **credentials(lab.keystone, lab.moorage),
                "endpoint_override": f"http://127.0.0.1:{placed}",
            },
            "quota": dict.fromkeys(("instances", "cores", "ram"), "-1"),
            "process": {"drain_seconds": "0"},
        }
        config = directory / "served.conf"
        config.write_text(ini(told))
        command: list[str | Path] = [
            *(PROGRAMS / "moorage-api", "--config-file", config, "--workers", "1"),
            *("--listen", "127.0.0.1", "--port", str(compute)),
        ]
        ready = partial(port_is_open, compute)
        with (
            moorage.start(config, workers=1, port=placed),
            start_service(command, compute, directory / "api.log", ready=ready),
        ):
            urls = f"http://127.0.0.1:{compute}/v2.1", f"http://127.0.0.1:{placed}"
            yield client_of(directory / "clouds.yaml", lab, *urls, lab.keystone.token(lab.keystone.admin))


def _single(lists: Shown) -> Iterator[str]:
    for server in lists[_SERVERS]:
        yield from (f"{what} {server['ID']}" for what in (*_OF_SERVER, _ALLOCATIONS))
    yield from (f"flavor show {flavor['ID']}" for flavor in lists[_FLAVORS])
    yield from (f"aggregate show {aggregate['ID']}" for aggregate in lists[_AGGREGATES])
    yield from (f"keypair show {key['Name']}" for key in lists[_KEYS])
    yield from (f"server group show {group['ID']}" for group in lists[_GROUPS])


def comparable(command: str, shown: Any) -> Any:
    """Without what is expected to differ; lists in an order that does not depend on a database's."""
    if command == _SERVICES:
        ours = [row for row in shown if row["Binary"] == "nova-compute"]
        return _sorted(_without(row, "State", "Updated At") for row in ours)
    if command == _HYPERVISORS:
        return _sorted(_without(row, "State") for row in shown)
    if command == _SERVERS:
        return _sorted(_without(row, "Host Status") for row in shown)
    if command.startswith("server show"):
        hidden = ["host_status", "OS-EXT-SRV-ATTR:root_device_name"]
        if shown["OS-EXT-SRV-ATTR:host"] is None:
            hidden.append("OS-EXT-SRV-ATTR:instance_name")
        return _without(shown, *hidden)
    return _sorted(shown) if isinstance(shown, list) else shown


def _without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def _sorted(rows: Any) -> list[Any]:
    return sorted(rows, key=repr)
