"""Ports of machines that Ironic binds: nobody else binds them, and nobody waits for a layer-2 agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.db.tables.compute import nodes
from tests.support.crossing import Crossing
from tests.support.stage_neutron import NETWORK, StageNeutron

FACTS = {"supported_instances": [["x86_64", "fake", "hvm"]]}


@pytest.mark.parametrize(
    "said",
    [
        {"facts": {**FACTS, "capabilities": {"binds_ports": True}}},
        {"facts": FACTS, "hypervisor_type": "ironic"},
    ],
    ids=["told", "agent too old to tell"],
)
def test_neutron_is_told_whose_they_are_and_no_more(
    crossing: Callable[..., Crossing], neutron: StageNeutron, said: dict[str, Any]
) -> None:
    """A simulated host, which Neutron knows nothing of, says that its ports are bound for it."""
    neutron.unbindable = {"host-1"}
    cloud = crossing()
    cloud.start_conductor()
    cloud.start_agent("host-1")
    with cloud.database.write() as connection:
        connection.execute(sa.update(nodes).values(**said))
    uuid = cloud.booted()["id"]
    attached = {"interfaceAttachment": {"net_id": NETWORK}}
    reply = cloud.api.simulate_post(f"/v2.1/servers/{uuid}/os-interface", json=attached)
    assert reply.status_code == 200, reply.text
    ports = neutron.ports_of(uuid)
    assert [(port["binding:host_id"], port["device_owner"]) for port in ports] == [("", "compute:nova")] * 2
    assert len(cloud.settled(uuid)["addresses"]["stage"]) == 2
    cloud.delete(uuid)
    assert neutron.owned() == []
