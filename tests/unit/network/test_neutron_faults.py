"""What Neutron's refusals mean: for this host, for any host, and in an API's words."""

from __future__ import annotations

import pytest

from moorage.network import neutron_faults
from moorage.network.contract import NetworkFault
from moorage.network.neutron_link import NeutronFault


@pytest.mark.parametrize(
    "kind",
    [
        "IpAddressGenerationFailure",
        "HostNotConnectedToAnySegment",
        "HostConnectedToMultipleSegments",
        "HostNotCompatibleWithFixedIps",
    ],
)
def test_what_is_wrong_with_a_host_is_tried_elsewhere(kind: str) -> None:
    error = neutron_faults.of_binding(NeutronFault(409, kind, "as Neutron says."), "host-7")
    assert error.retry_elsewhere
    assert "host-7" in str(error)
    assert "as Neutron says." in str(error)


@pytest.mark.parametrize(
    ("status", "kind", "whose", "words"),
    [
        (409, "OverQuota", NetworkFault.FORBIDDEN, "Maximum number of ports exceeded"),
        (409, "IpAddressGenerationFailure", NetworkFault.BAD_REQUEST, "No more IP addresses"),
        (409, "IpAddressAlreadyAllocated", NetworkFault.TAKEN, "already in use"),
        (400, "InvalidIpForNetwork", NetworkFault.BAD_REQUEST, "not of the network"),
        (409, "MacAddressInUse", NetworkFault.CONFLICT, "MAC address"),
        (404, "NetworkNotFound", NetworkFault.NOT_FOUND, "network could not be found"),
        (404, "PortNotFound", NetworkFault.NOT_FOUND, "port could not be found"),
        (404, "SecurityGroupNotFound", NetworkFault.BAD_REQUEST, "security group could not be found"),
        (403, "PolicyNotAuthorized", NetworkFault.FORBIDDEN, "does not allow"),
        (401, "", NetworkFault.FORBIDDEN, "does not allow"),
        (409, "SomethingNew", NetworkFault.CONFLICT, "Neutron refuses"),
        (400, "SomethingNew", NetworkFault.BAD_REQUEST, "Neutron refuses"),
    ],
)
def test_what_no_host_can_mend_is_told_to_the_user(
    status: int, kind: str, whose: NetworkFault, words: str
) -> None:
    error = neutron_faults.of_request(NeutronFault(status, kind, "as Neutron says."))
    assert (error.fault, error.retry_elsewhere) == (whose, False)
    assert words in str(error)


def test_a_binding_that_fails_for_another_reason_is_no_host_s_fault() -> None:
    error = neutron_faults.of_binding(NeutronFault(404, "PortNotFound", "gone."), "host-7")
    assert not error.retry_elsewhere
