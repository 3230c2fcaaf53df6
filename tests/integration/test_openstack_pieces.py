"""A deployment in pieces beside a real Keystone, Neutron and Glance, whose lists come in small pages."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from openstack.connection import Connection
from openstack.exceptions import ConflictException

from tests.integration.clouds import keystone_clouds
from tests.integration.openstack_neighbours import OpenStackNeighbours
from tests.integration.openstack_site import IMAGE, PATIENCE, make_image
from tests.lab.client.openstack import openstack, order
from tests.lab.keystone.service import Person
from tests.lab.openstack import service as openstack_service
from tests.lab.openstack.service import OpenStack
from tests.support import debian
from tests.support.deployment import SHARED_FLAVOR, Deployment, Shape, running
from tests.support.moorage import PROGRAMS
from tests.support.processes import wait_until

NETWORKS = 5
"""More than two pages of them."""
SHAPE = Shape(shared_nodes=1, exclusive_nodes=1, apis=1)

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


class RealNeighbours(OpenStackNeighbours):
    def seed(self, manage: Sequence[str | Path], urls: Mapping[str, str]) -> None:
        super().seed(manage, urls)
        for host in SHAPE.hosts:
            self.lab.put_host(host, physnets=["physnet1"])

    def image_id(self, deployment: Deployment) -> str:
        return make_image(self.lab.connect(self.lab.moorage))


class Site:
    def __init__(self, cloud: Deployment, lab: OpenStack) -> None:
        self.cloud = cloud
        self.lab = lab
        self.other = lab.keystone.add_person("other", "member", "other")
        self.admin: Connection = lab.connect(lab.moorage)
        self.demo: Connection = lab.connect(lab.demo, compute_default_microversion="2.96")
        self._clouds_file = cloud.directory / "clouds.yaml"
        self._clouds_file.write_text(keystone_clouds(lab.keystone, lab.demo, self.other))

    def ask(self, person: Person, command: str) -> Any:
        """With the official client."""
        return openstack(self._clouds_file, person.name, *command.split())

    def order(self, person: Person, command: str) -> None:
        order(self._clouds_file, person.name, *command.split())

    def check_upgrade(self) -> subprocess.CompletedProcess[str]:
        command = [
            str(PROGRAMS / "moorage-status"),
            "--config-file",
            str(self.cloud.config),
            "upgrade",
            "check",
        ]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def conductors_up(self) -> set[str]:
        services = self.cloud.get("/v2.1/os-services?binary=nova-conductor")["services"]
        return {service["host"] for service in services if service["state"] == "up"}

    def ports_of(self, server_id: str) -> list[Any]:
        return list(self.admin.network.ports(device_id=server_id))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("pieces")
    try:
        with openstack_service.start(directory / "openstack", {}) as lab:
            assert list(lab.connect(lab.moorage).network.networks()) == []
            with running(directory, SHAPE, RealNeighbours(lab)) as cloud:
                yield Site(cloud, lab)
    except debian.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def networks(site: Site) -> list[str]:
    """The demo user's."""
    made = [site.demo.network.create_network(name=f"net-{number}") for number in range(NETWORKS)]
    for number, network in enumerate(made):
        cidr = f"10.10.{number}.0/24"
        site.demo.network.create_subnet(network_id=network.id, ip_version=4, cidr=cidr)
    return [network.name for network in made]


def test_conductors_start_beside_a_neutron_without_networks(site: Site) -> None:
    assert site.conductors_up() == {conductor.name for conductor in site.cloud.conductors}
    checked = site.check_upgrade()
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout


def test_a_conductor_starts_beside_a_neutron_with_many_networks(site: Site, networks: list[str]) -> None:
    checked = site.check_upgrade()
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout
    for conductor in site.cloud.conductors:
        assert conductor.end() == 0
    wait_until(lambda: site.conductors_up() == set(), "the conductors to be down", PATIENCE)
    for conductor in site.cloud.conductors:
        conductor.start()
    names = {conductor.name for conductor in site.cloud.conductors}
    wait_until(lambda: site.conductors_up() == names, "the conductors to be up", PATIENCE)


def test_the_official_client_takes_a_server_through_its_life(site: Site, networks: list[str]) -> None:
    demo, nics = site.lab.demo, " ".join(f"--network {name}" for name in networks)
    made = site.ask(demo, f"server create --flavor {SHARED_FLAVOR} --image {IMAGE} {nics} --wait web")
    assert made["status"] == "ACTIVE"
    ports = site.ports_of(made["id"])
    assert len(ports) == NETWORKS
    assert {port.status for port in ports} == {"ACTIVE"}
    assert {port.binding_host_id for port in ports} <= set(SHAPE.hosts)
    shown = site.ask(demo, "server show web")
    assert set(shown["addresses"]) == set(networks)
    assert [server["Name"] for server in site.ask(demo, "server list")] == ["web"]
    assert site.ask(site.other, "server list") == []
    site.order(demo, "server delete --wait web")
    assert site.ask(demo, "server list") == []
    assert site.ports_of(made["id"]) == []


def test_several_networks_to_choose_from_are_told(site: Site, networks: list[str]) -> None:
    with pytest.raises(ConflictException, match="Multiple possible networks found"):
        site.demo.compute.create_server(
            name="web", image_id=site.cloud.image_id, flavor_id=SHARED_FLAVOR, networks="auto"
        )
    assert list(site.demo.compute.servers()) == []
