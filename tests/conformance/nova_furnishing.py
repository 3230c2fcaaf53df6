"""Furnishing a cloud of Nova's with one of each kind of thing that users and operators leave in one."""

from __future__ import annotations

import base64
from typing import Any

from tests.conformance.nova_scenario import HOSTS, Scenario
from tests.lab.openstack.service import OpenStack

PUBLIC_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJxyyI2gDW5NmtZ7lVXmC7cTOIBy9wE0DAbxNJzYyOTT somebody@example.org"
)
_USER_DATA = base64.b64encode(b"#cloud-config\n").decode()


def furnish(scenario: Scenario, lab: OpenStack) -> None:
    """Afterwards one of its hosts is disabled."""
    api = scenario.nova.api
    for host in HOSTS:
        lab.put_host(host)
    _flavors(api, lab.demo.project_id)
    _limits(api, lab.demo.project_id)
    api.set_aggregate_metadata(scenario.aggregates["zone-left"], {"ssd": "true"})
    api.create_keypair(name="laptop", public_key=PUBLIC_KEY)
    group = api.create_server_group(name="apart", policy="anti-affinity", rules={"max_server_per_host": 2})
    _servers(scenario, _network(lab), group.id)
    api.disable_service(_service(api, "right"), disabled_reason="being repaired")


def _flavors(api: Any, project_id: str) -> None:
    described = api.create_flavor(
        name="fast", vcpus=1, ram=512, disk=1, id="fast", ephemeral=0, swap=64, description="With a swap disk"
    )
    api.create_flavor_extra_specs(described, {"hw:cpu_policy": "shared", "trait:COMPUTE_NODE": "required"})
    hidden = api.create_flavor(name="hidden", vcpus=1, ram=256, disk=1, is_public=False)
    api.flavor_add_tenant_access(hidden, project_id)


def _limits(api: Any, project_id: str) -> None:
    api.put(f"/os-quota-sets/{project_id}", json={"quota_set": {"cores": 77, "key_pairs": 7}})
    api.put(
        f"/os-quota-sets/{project_id}?user_id=somebody", json={"quota_set": {"instances": 3}}
    ).raise_for_status()
    api.put("/os-quota-class-sets/default", json={"quota_class_set": {"metadata_items": 99}})


def _network(lab: OpenStack) -> str:
    network = lab.connect(lab.keystone.admin).network
    made = network.create_network(name="inside", provider_network_type="local")
    network.create_subnet(
        network_id=made.id, ip_version=4, cidr="10.9.0.0/24", dns_nameservers=["10.9.0.53"], name="inside"
    )
    return str(made.id)


def _servers(scenario: Scenario, network_id: str, group_id: str) -> None:
    api = scenario.nova.api
    scenario.boot(
        "furnished",
        flavor="small",
        networks=[{"uuid": network_id, "tag": "nic"}],
        host="left",
        description="With all that one can ask for",
        key_name="laptop",
        user_data=_USER_DATA,
        config_drive=True,
        metadata={"purpose": "test", "empty": ""},
        tags=["blue", "green"],
        scheduler_hints={"group": group_id},
    )
    scenario.boot("stopped", host="left", hostname="quiet")
    scenario.settled("ACTIVE", "furnished", "stopped")
    api.stop_server(scenario.servers["stopped"])
    scenario.settled("SHUTOFF", "stopped")
    api.lock_server(scenario.servers["stopped"], locked_reason="not to be started")


def _service(api: Any, host: str) -> Any:
    (service,) = api.services(host=host, binary="nova-compute")
    return service
