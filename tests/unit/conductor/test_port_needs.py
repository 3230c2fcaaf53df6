"""What ports need becomes part of the question to Placement."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.deciding.port_needs import SegmentAggregates
from moorage.network.contract import PortGroup, PortNeeds, PortRecord
from moorage.scheduler.errors import NoHostAllowedError
from moorage.scheduler.request import Request
from tests.unit.scheduler.clouds import request

REACH = SegmentAggregates({"near": frozenset({"aggregate-1"}), "far": frozenset({"aggregate-2"})})


def asked(*needs: PortNeeds) -> dict[str, Any]:
    """A request as a server's row keeps it."""
    ports = [PortRecord(f"port-{n}", "net", "blue", ours=True, needs=each) for n, each in enumerate(needs)]
    return {"ports": msgspec.to_builtins(ports)}


def pairs(narrowed: Request) -> list[tuple[str, str]]:
    return narrowed.queries(10)[0]


def test_ports_that_need_nothing_change_nothing() -> None:
    assert REACH.narrow(request(), asked(PortNeeds())) == request()
    assert REACH.narrow(request(), {}) == request()


def test_a_port_that_may_be_in_several_segments_goes_to_the_hosts_of_any() -> None:
    narrowed = REACH.narrow(request(), asked(PortNeeds(segments=["near", "far"], network_name="blue")))
    assert ("member_of", "in:aggregate-1,aggregate-2") in pairs(narrowed)
    assert "network 'blue'" in str(narrowed.narrowings[-1])


def test_each_of_several_ports_has_to_be_reached() -> None:
    narrowed = REACH.narrow(request(), asked(PortNeeds(segments=["near"]), PortNeeds(segments=["far"])))
    told = [value for name, value in pairs(narrowed) if name == "member_of"]
    assert told == ["in:aggregate-1", "in:aggregate-2"]


def test_where_no_segment_has_addresses_nobody_is_asked() -> None:
    with pytest.raises(NoHostAllowedError, match="No addresses are left on network 'blue'"):
        REACH.narrow(request(), asked(PortNeeds(segments=[], network_name="blue")))


def test_a_segment_that_placement_does_not_know_rules_nothing_out() -> None:
    narrowed = REACH.narrow(request(), asked(PortNeeds(segments=["near", "unheard of"])))
    assert not any(name == "member_of" for name, _ in pairs(narrowed))


def test_bandwidth_and_packets_come_from_one_branch() -> None:
    bandwidth = PortGroup("b", {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}, ["CUSTOM_PHYSNET_0"])
    packets = PortGroup("p", {"NET_PACKET_RATE_KILOPACKET_PER_SEC": 5})
    needs = PortNeeds(groups=[bandwidth, packets], same_subtree=["b", "p"])
    told = pairs(REACH.narrow(request(), asked(needs)))
    assert ("resources_b", "NET_BW_EGR_KILOBIT_PER_SEC:1000") in told
    assert ("required_b", "CUSTOM_PHYSNET_0") in told
    assert ("resources_p", "NET_PACKET_RATE_KILOPACKET_PER_SEC:5") in told
    assert ("group_policy", "none") in told
    assert ("same_subtree", "_b,_p") in told
