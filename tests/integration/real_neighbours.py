"""A real Keystone, Neutron and Glance as the neighbours of a deployment in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.integration.openstack_site import make_image, sections
from tests.lab.openstack.service import OpenStack
from tests.lab.openstack.settings import credentials
from tests.support.deployment import Deployment, Neighbours
from tests.support.profiles import Settings


class RealNeighbours(Neighbours):
    """Agents know of none but Placement, whose address is in Keystone's catalogue."""

    def __init__(self, lab: OpenStack, hosts: Sequence[str]) -> None:
        self.lab = lab
        self.hosts = hosts
        self.token = lab.keystone.token(lab.moorage)

    def sections(self, placement_url: str) -> Settings:
        return {"placement_client": credentials(self.lab.keystone, self.lab.moorage)}

    def server_sections(self) -> Settings:
        told = sections(self.lab)
        return {**told, "network": {**told["network"], "required_on_conductor": "true"}}

    def seed(self, manage: Sequence[str | Path], urls: Mapping[str, str]) -> None:
        for kind, url in urls.items():
            self.lab.keystone.add_service(kind, kind, url)
        for host in self.hosts:
            self.lab.put_host(host, physnets=["physnet1"])

    def image_id(self, deployment: Deployment) -> str:
        return make_image(self.lab.connect(self.lab.moorage))
