"""Ports that servers have and Neutron has not, and the other way round: an audit names and mends both."""

from __future__ import annotations

from collections.abc import Callable

from moorage.compute.audits.audit import CheckName
from tests.functional.conductor import auditing
from tests.support.crossing import Crossing
from tests.support.stage_neutron import StageNeutron

Make = Callable[..., Crossing]
AT_ONCE = {"conductor.audit_grace": 0, "conductor.audit_interval": 0}


def running(crossing: Make) -> tuple[Crossing, str, str]:
    """A cloud, and two servers of it."""
    cloud = crossing(**AT_ONCE)
    cloud.start_conductor()
    cloud.start_agent("host-1")
    first, second = (str(cloud.settled(cloud.boot())["id"]) for _ in range(2))
    assert auditing.audit(cloud) == ([], {})
    return cloud, first, second


def ports_at(cloud: Crossing, uuid: str) -> int:
    """As the API shows them."""
    return len(cloud.get(f"/v2.1/servers/{uuid}/os-interface")["interfaceAttachments"])


def test_a_port_that_neutron_has_lost_is_taken_from_its_server(crossing: Make, neutron: StageNeutron) -> None:
    cloud, uuid, other = running(crossing)
    (port,) = neutron.ports_of(uuid)
    del neutron.ports[port["id"]]
    auditing.check(
        cloud,
        CheckName.LOST_PORTS,
        f"server {uuid} has port {port['id']}, which the network service does not",
    )
    assert (ports_at(cloud, uuid), ports_at(cloud, other)) == (0, 1)
    assert len(neutron.ports_of(other)) == 1


def test_a_port_that_no_server_knows_is_deleted(crossing: Make, neutron: StageNeutron) -> None:
    cloud, uuid, other = running(crossing)
    (port,) = neutron.ports_of(uuid)
    stray = neutron.copy_port(port["id"])
    auditing.check(cloud, CheckName.PORTS, f"port {stray} was made for server {uuid}, which does not know it")
    assert [one["id"] for one in neutron.ports_of(uuid)] == [port["id"]]
    assert (ports_at(cloud, uuid), ports_at(cloud, other)) == (1, 1)
