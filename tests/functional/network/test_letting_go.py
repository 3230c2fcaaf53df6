"""Ports are let go of: by a build that leaves a host that failed it, and for good."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.core import uuids
from moorage.network.contract import Binding, NetworkDeniedError, PortRecord, PortRequest, ServerPorts
from moorage.network.neutron import NeutronNetwork
from tests.support import stage_neutron
from tests.support.stage_neutron import StageNeutron


@pytest.fixture
def network(neutron: StageNeutron) -> Iterator[NeutronNetwork]:
    with stage_neutron.serving(neutron) as port:
        yield stage_neutron.network_at(port, "conductor")


def bound_to(network: NeutronNetwork, host: str) -> list[PortRecord]:
    server = uuids.generate()
    (ports,) = network.prepare([PortRequest(server, "project", "s", [{"uuid": stage_neutron.NETWORK}])])
    assert isinstance(ports, list)
    (bound,) = network.bind([Binding(server, ports, host, "cell")])
    assert isinstance(bound, list)
    return bound


@pytest.mark.parametrize("named", ["host-1", "node-1"])
def test_a_port_is_unbound_from_the_host_or_from_the_node_that_a_driver_named(
    network: NeutronNetwork, neutron: StageNeutron, named: str
) -> None:
    ports = bound_to(network, named)
    network.unbind(ports, "host-1", "node-1")
    assert [port["binding:host_id"] for port in neutron.ports.values()] == [""]


def test_a_port_that_is_bound_elsewhere_by_now_stays_there(
    network: NeutronNetwork, neutron: StageNeutron
) -> None:
    ports = bound_to(network, "host-2")
    network.unbind(ports, "host-1", "node-1")
    assert [port["binding:host_id"] for port in neutron.ports.values()] == ["host-2"]


def test_a_port_that_is_gone_is_no_trouble(network: NeutronNetwork, neutron: StageNeutron) -> None:
    ports = bound_to(network, "host-1")
    neutron.ports.clear()
    assert network.unbind(ports, "host-1", "node-1") == ports


def test_what_can_not_be_seen_is_not_taken_for_gone(network: NeutronNetwork, neutron: StageNeutron) -> None:
    ports = bound_to(network, "host-1")
    holding = ServerPorts(neutron.owned()[0]["device_id"], ports)
    neutron.hides = True
    with pytest.raises(NetworkDeniedError):
        network.release([holding])
    neutron.hides = False
    network.release([holding])
    assert neutron.owned() == []


def test_who_is_not_known_at_first_asks_again(
    network: NeutronNetwork, neutron: StageNeutron, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a Neutron that has just started."""
    ports = bound_to(network, "host-1")
    holding = ServerPorts(neutron.owned()[0]["device_id"], ports)
    neutron.hides = True
    answer = neutron._answer

    def hide_once(*asked: Any) -> Any:
        answered = answer(*asked)
        neutron.hides = False
        return answered

    monkeypatch.setattr(neutron, "_answer", hide_once)
    network.release([holding])
    assert neutron.owned() == []
