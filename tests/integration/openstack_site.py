"""Moorage beside a real Keystone, Glance and Neutron: `moorage up` with what an operator would configure."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from openstack.connection import Connection
from openstack.exceptions import NotFoundException

from moorage.drivers.fake.servers import FakeServer
from tests.integration.clouds import keystone_clouds
from tests.integration.embedded import MOORAGE
from tests.lab.client.openstack import order
from tests.lab.openstack import service as openstack
from tests.lab.openstack.service import OpenStack
from tests.lab.openstack.settings import PAGE, credentials
from tests.support.processes import Service, free_port, port_is_open, start_service, wait_until
from tests.support.profiles import Settings, ini

HOSTS = {"fake-1": "physnet1", "fake-2": "physnet2", "fake-3": "physnet3"}
"""Each reaches one physical network, and the tunnels of all others."""
PATIENCE = 120.0
IMAGE = "tiny"


@dataclass
class Site:
    lab: OpenStack
    directory: Path
    ports: dict[str, int]
    moorage: Service
    admin: Connection
    demo: Connection
    hosts: Mapping[str, str]
    image_id: str = ""

    # ------------------------------------------------------------ networks

    def plain_network(self, name: str, cidr: str = "10.10.0.0/24", **fields: Any) -> Any:
        """One that all hosts reach."""
        network = self.demo.network.create_network(name=name, **fields)
        self.demo.network.create_subnet(network_id=network.id, ip_version=4, cidr=cidr)
        return network

    def routed_network(self, name: str, cidrs: dict[str, str], tag: int) -> Any:
        """One with a segment for each of these physical networks; all segments first, then their subnets."""
        made = self.admin.network
        first, *others = cidrs
        network = made.create_network(
            name=name,
            is_shared=True,
            provider_network_type="vlan",
            provider_physical_network=first,
            provider_segmentation_id=tag,
        )
        segments = {first: next(iter(made.segments(network_id=network.id)))}
        for number, physical in enumerate(others, start=1):
            segments[physical] = made.create_segment(
                network_id=network.id,
                network_type="vlan",
                physical_network=physical,
                segmentation_id=tag + number,
            )
        for physical, cidr in cidrs.items():
            segment_id = segments[physical].id
            made.create_subnet(network_id=network.id, ip_version=4, cidr=cidr, segment_id=segment_id)
        self.await_segments(network)
        return network

    def await_segments(self, network: Any) -> None:
        """Until Neutron has made an aggregate for each segment. Now and then an event is left in its queue
        until the next one comes, so one is made every few seconds."""
        segments = list(self.admin.network.segments(network_id=network.id))
        for _ in range(int(PATIENCE / 5)):
            found = {aggregate.name: aggregate.hosts for aggregate in self.admin.compute.aggregates()}
            if all(found.get(f"Neutron segment id {segment.id}") for segment in segments):
                return
            time.sleep(5)
            subnet = next(iter(self.admin.network.subnets(network_id=network.id)))
            address = {"subnet_id": subnet.id, "ip_address": subnet.gateway_ip.rpartition(".")[0] + ".2"}
            port = self.admin.network.create_port(network_id=network.id, fixed_ips=[address])
            self.admin.network.delete_port(port)
        raise AssertionError("Neutron did not make the aggregates of the segments")

    def await_bandwidth(self, kbps: int, *, hosts: int) -> None:
        """Until so many have it to give: Neutron tells Placement at some heartbeat what its agents have."""

        def there() -> bool:
            found = self.admin.placement.get(
                f"/resource_providers?resources=NET_BW_EGR_KILOBIT_PER_SEC:{kbps}",
                headers={"OpenStack-API-Version": "placement 1.39"},
            )
            return len(found.json()["resource_providers"]) == hosts

        wait_until(there, "the bandwidth", PATIENCE)

    # ------------------------------------------------------------ servers

    def boot(self, networks: Any, **fields: Any) -> Any:
        """A server of the ordinary user's, as accepted."""
        asked = {"name": "web", "image_id": self.image_id, "flavor_id": "1", **fields}
        return self.demo.compute.create_server(networks=networks, **asked)

    def settled(self, server: Any) -> Any:
        """The server, as an administrator sees it, once it is built or has failed."""

        def over() -> bool:
            return self.admin.compute.get_server(server.id).status in ("ACTIVE", "ERROR")

        wait_until(over, "the server to settle", PATIENCE)
        return self.admin.compute.get_server(server.id)

    def booted(self, networks: Any, **fields: Any) -> Any:
        server = self.settled(self.boot(networks, **fields))
        assert server.status == "ACTIVE", server.fault
        return server

    def delete(self, *servers: Any) -> None:
        for server in servers:
            self.demo.compute.delete_server(server.id)
        for server in servers:
            self.demo.compute.wait_for_delete(server, wait=PATIENCE)
            assert self.ports_of(server) == []

    def ports_of(self, server: Any) -> list[Any]:
        """Asked again where the last one of a page goes before the next page is asked for."""
        for _ in range(10):
            with contextlib.suppress(NotFoundException):
                return list(self.admin.network.ports(device_id=server.id))
        raise AssertionError("Neutron's list of the ports never came to an end")

    def interfaces_on_host(self, server: Any) -> set[str]:
        """The ports that the server has where it runs."""
        host = self.admin.compute.get_server(server.id).compute_host
        path = self.directory / "data" / "agents" / host / "fake-servers.sqlite"
        with sqlite3.connect(path) as file:
            rows = file.execute("SELECT server FROM servers WHERE uuid = ?", (server.id,)).fetchall()
        ((encoded,),) = rows
        return set(msgspec.msgpack.decode(encoded, type=FakeServer).interfaces)

    def order(self, command: str, version: str = "2.96") -> None:
        """As the ordinary user does it with the official client."""
        clouds = self.directory / "clouds.yaml"
        clouds.write_text(keystone_clouds(self.lab.keystone, self.lab.demo))
        order(clouds, self.lab.demo.name, "--os-compute-api-version", version, *command.split())

    def addresses(self, server: Any) -> list[str]:
        return [address["addr"] for each in server.addresses.values() for address in each]

    # ------------------------------------------------------------ life and death

    def kill(self) -> None:
        self.moorage.kill()

    def start(self) -> None:
        self.moorage = _start(self.directory, self.ports, self.hosts)


@contextmanager
def running(
    directory: Path, hosts: Mapping[str, str] = HOSTS, settings: Settings | None = None, page: str = PAGE
) -> Iterator[Site]:
    """`settings` take the place of the usual sections. No list of the neighbours is longer than a `page`."""
    ports = {"compute": free_port(), "placement": free_port()}
    urls = {
        "compute": f"http://127.0.0.1:{ports['compute']}/v2.1",
        "placement": f"http://127.0.0.1:{ports['placement']}",
    }
    with openstack.start(directory, urls, page=page) as lab:
        (directory / "moorage.conf").write_text(ini({**_settings(lab), **(settings or {})}))
        admin, demo = (_connect(lab, person) for person in (lab.moorage, lab.demo))
        site = Site(lab, directory, ports, _start(directory, ports, hosts), admin, demo, hosts)
        try:
            _furnish(site)
            yield site
        finally:
            site.moorage.stop()


def sections(lab: OpenStack) -> Settings:
    """What Moorage's configuration says of its neighbours."""
    itself = credentials(lab.keystone, lab.moorage)
    checking = {"www_authenticate_uri": lab.keystone.url, "service_token_roles_required": "true"}
    return {
        "auth": {"strategy": "keystone"},
        "keystone_authtoken": {**itself, **checking},
        "network": {"provider": "neutron", "plug_timeout": "20"},
        "neutron": itself,
        "images": {"provider": "glance"},
        "glance": itself,
    }


def _settings(lab: OpenStack) -> Settings:
    return {
        **sections(lab),
        "agent": {"heartbeat_interval": "0.5", "inventory_interval": "0.5"},
        "conductor": {"lease_seconds": "5", "audit_grace": "1"},
        "network": {**sections(lab)["network"], "refresh_interval": "0"},
        "fake": {"vcpus": "8"},
        "quota": {"instances": "-1", "cores": "-1", "ram": "-1"},
    }


def _start(directory: Path, ports: dict[str, int], hosts: Mapping[str, str]) -> Service:
    command: list[str | Path] = [
        *(MOORAGE, "up", "--data", directory / "data", "--config", directory / "moorage.conf"),
        *("--auth", "keystone", "--hosts", str(len(hosts))),
        *("--placement-port", str(ports["placement"]), "--compute-port", str(ports["compute"])),
    ]
    compute = ports["compute"]
    return start_service(
        command, compute, directory / "up.log", ready=lambda: port_is_open(compute), timeout=PATIENCE
    )


def _connect(lab: OpenStack, person: Any) -> Connection:
    return lab.connect(person, compute_default_microversion="2.96")


def _furnish(site: Site) -> None:
    """Hosts that Neutron knows, and an image."""
    for host, physical in site.hosts.items():
        site.lab.put_host(host, physnets=[physical])
    site.image_id = make_image(site.admin)
    wait_until(
        lambda: len(list(site.admin.compute.hypervisors())) == len(site.hosts),
        "the hosts to report",
        PATIENCE,
    )


def make_image(admin: Connection) -> str:
    """One that everybody may use."""
    made = admin.image.create_image(
        name=IMAGE, data=b"0" * 1024, disk_format="raw", container_format="bare", visibility="public"
    )
    return str(made.id)
