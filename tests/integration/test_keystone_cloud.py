"""A cloud of one process behind a real Keystone, whose limits it holds, with the official client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests

from moorage.cli import settings
from moorage.compute.quotas.options import UNIFIED
from moorage.core import uuids
from moorage.http.caller import AGENT_ROLE
from moorage.placement.client.connect import connect
from moorage.placement.client.contract import PlacementClient, PlacementRefusedError, ReportedProvider
from tests.integration.clouds import keystone_clouds
from tests.integration.embedded import MOORAGE
from tests.lab.client.openstack import ClientError, openstack, order
from tests.lab.keystone import service as keystone_service
from tests.lab.keystone.service import Keystone, Person
from tests.lab.keystone.settings import REGION
from tests.support.processes import free_port, port_is_open, start_service, wait_until
from tests.support.profiles import ini

IMAGE = "cirros-0.6.3-x86_64-disk"


@dataclass
class Site:
    clouds: Path
    keystone: Keystone
    demo: Person
    friend: Person
    agents: tuple[Person, Person]
    compute_url: str
    placement_url: str

    def show(self, person: Person, command: str) -> Any:
        return openstack(self.clouds, person.name, *command.split())

    def order(self, person: Person, command: str) -> None:
        order(self.clouds, person.name, *command.split())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("cloud")
    keystone = keystone_service.start(directory / "keystone")
    compute, placement = free_port(), free_port()
    url = f"http://127.0.0.1:{compute}"
    try:
        keystone.add_service("compute", "moorage", f"{url}/v2.1")
        keystone.add_service("image", "catalogue", f"{url}/image")
        keystone.register_limits("compute", {"servers": 2, "class:VCPU": 2, "server_key_pairs": 1})
        itself = keystone.add_person("moorage", "service", "service", "admin")
        demo, friend = (keystone.add_person(name, "member", name) for name in ("demo", "friend"))
        keystone.add_role(AGENT_ROLE)
        one, two = (keystone.add_person(f"rack-7-node-{n}", AGENT_ROLE, "service") for n in (1, 2))
        credentials = {"auth_type": "password", "region_name": REGION, **itself.auth(keystone.url)}
        config = directory / "moorage.conf"
        config.write_text(
            ini(
                {
                    "auth": {"strategy": "keystone"},
                    "keystone_authtoken": {**credentials, "service_token_roles_required": "true"},
                    "quota": {"driver": UNIFIED, "unified_limits_cache_seconds": "0.5"},
                    "oslo_limit": credentials,
                    "placement": {"tree_owners": "require"},
                }
            )
        )
        clouds = directory / "clouds.yaml"
        clouds.write_text(keystone_clouds(keystone, keystone.admin, demo, friend))
        command: list[str | Path] = [
            *(MOORAGE, "up", "--data", directory / "data", "--config", config, "--auth", "keystone"),
            *("--hosts", "2", "--placement-port", str(placement), "--compute-port", str(compute)),
        ]
        with start_service(command, compute, directory / "up.log", ready=partial(port_is_open, compute)):
            at = f"http://127.0.0.1:{placement}"
            yield Site(clouds, keystone, demo, friend, (one, two), f"{url}/v2.1", at)
    finally:
        keystone.stop()


def test_limits_of_keystone_hold_for_the_official_client(site: Site) -> None:
    boot = f"server create --flavor m1.tiny --image {IMAGE} --nic none --wait"
    site.order(site.demo, f"{boot} one")
    with pytest.raises(ClientError, match="class:VCPU is over limit of 2 due to current usage 1 and delta 3"):
        site.order(site.demo, "server resize --flavor m1.large one")
    site.order(site.demo, f"{boot} two")
    with pytest.raises(ClientError, match="Resource servers is over limit of 2 due to current usage 2"):
        site.order(site.demo, f"{boot} three")
    where = f"--service compute --region {REGION}"
    site.order(
        site.keystone.admin,
        f"limit create {where} --project {site.demo.project_id} --resource-limit 3 servers",
    )

    def limits() -> dict[str, int]:
        return {row["Resource"]: row["Limit"] for row in site.show(site.demo, "quota show --compute")}

    wait_until(lambda: limits()["instances"] == 3, "what was read before to be out of date", 30)
    assert (limits()["cores"], limits()["key-pairs"]) == (2, 1)
    for name in ("one", "two"):
        site.order(site.demo, f"server delete --wait {name}")


def test_an_image_is_shared_with_a_project_by_the_official_client(site: Site, tmp_path: Path) -> None:
    disk = tmp_path / "disk.raw"
    disk.write_bytes(b"0" * 1024)
    site.order(site.demo, f"image create --file {disk} --disk-format raw --shared lent")
    lent = site.show(site.demo, "image show lent")["id"]
    with pytest.raises(ClientError, match="No Image found"):
        site.show(site.friend, f"image show {lent}")
    site.order(site.demo, f"image add project lent {site.friend.project_id}")
    assert site.show(site.friend, f"image show {lent}")["name"] == "lent"
    assert "lent" not in [image["Name"] for image in site.show(site.friend, "image list")]
    site.order(site.friend, f"image set --accept {lent}")
    assert "lent" in [image["Name"] for image in site.show(site.friend, "image list")]
    (member,) = site.show(site.demo, "image member list lent")
    assert (member["Member ID"], member["Status"]) == (site.friend.project_id, "accepted")
    boot = f"server create --flavor m1.tiny --image {lent} --nic none --wait borrowed"
    assert site.show(site.friend, boot)["status"] == "ACTIVE"
    site.order(site.friend, "server delete --wait borrowed")
    site.order(site.demo, f"image remove project lent {site.friend.project_id}")
    with pytest.raises(ClientError, match="No Image found"):
        site.show(site.friend, f"image show {lent}")
    site.order(site.demo, "image delete lent")


def placement_of(site: Site, agent: Person, directory: Path) -> PlacementClient:
    """As `moorage-agent` with these credentials has it."""
    path = directory / f"{agent.name}.conf"
    login = {
        "auth_type": "password",
        "endpoint_override": site.placement_url,
        **agent.auth(site.keystone.url),
    }
    path.write_text(ini({"placement_client": login}))
    return connect(settings.read([path]))


def test_an_agent_is_only_itself(site: Site, tmp_path: Path) -> None:
    """Of Compute it gets nothing, and of Placement what is its own."""
    one, two = (placement_of(site, agent, tmp_path) for agent in site.agents)
    nodes = [
        ReportedProvider(uuids.generate(), agent.name, inventories={"VCPU": {"total": 4}})
        for agent in site.agents
    ]
    for client, node in zip((one, two), nodes, strict=True):
        client.report([node])
        client.report([node])
    taken = ReportedProvider(nodes[1].uuid, nodes[1].name, inventories={"VCPU": {"total": 1}})
    writes: tuple[Callable[[], None], ...] = (
        partial(one.report, [taken]),
        partial(one.delete_provider, taken.uuid),
        partial(one.set_trait, [taken.uuid], "COMPUTE_STATUS_DISABLED", present=True),
    )
    for write in writes:
        with pytest.raises(PlacementRefusedError, match="is another agent's") as refused:
            write()
        assert refused.value.status == 403
    (kept,) = two.tree(nodes[1].uuid)
    assert kept.inventories["VCPU"].total == 4
    headers = {"X-Auth-Token": site.keystone.token(site.agents[0])}
    for path in ("/servers", "/flavors", "/os-services"):
        answer = requests.get(f"{site.compute_url}{path}", headers=headers, timeout=60)
        assert answer.status_code == 403
        assert "The credentials of an agent are of no use here." in answer.text
    for client, node in zip((one, two), nodes, strict=True):
        client.delete_provider(node.uuid)
        assert client.tree(node.uuid) == []
