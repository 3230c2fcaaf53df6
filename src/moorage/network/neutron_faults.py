"""What Neutron's refusals mean for a server: a sentence for the user, and whether another host may do."""

from __future__ import annotations

from moorage.network.contract import NetworkError, NetworkFault
from moorage.network.neutron_link import NeutronFault

_ELSEWHERE = {
    "IpAddressGenerationFailure": "No addresses are left where host {host} is",
    "HostNotConnectedToAnySegment": "Host {host} reaches no segment of the network",
    "HostConnectedToMultipleSegments": "Host {host} reaches several segments of the network",
    "HostNotCompatibleWithFixedIps": "Host {host} is in another segment than the addresses of the port",
    "PortBindingError": "Neutron could not bind the port at host {host}",
}
_WHATEVER_HOST = {
    "OverQuota": ("Maximum number of ports exceeded", NetworkFault.FORBIDDEN),
    "IpAddressGenerationFailure": (
        "No more IP addresses are available on the network",
        NetworkFault.BAD_REQUEST,
    ),
    "IpAddressAlreadyAllocated": ("A fixed IP address is already in use", NetworkFault.TAKEN),
    "InvalidIpForNetwork": ("A fixed IP address is not of the network", NetworkFault.BAD_REQUEST),
    "InvalidIpForSubnet": ("A fixed IP address is not of its subnet", NetworkFault.BAD_REQUEST),
    "MacAddressInUse": ("A MAC address is already in use", NetworkFault.CONFLICT),
    "NetworkNotFound": ("A network could not be found", NetworkFault.NOT_FOUND),
    "PortNotFound": ("A port could not be found", NetworkFault.NOT_FOUND),
    "SecurityGroupNotFound": ("A security group could not be found", NetworkFault.BAD_REQUEST),
}


def of_binding(fault: NeutronFault, host: str) -> NetworkError:
    """Of the wish to bind a port to a host."""
    words = _ELSEWHERE.get(fault.kind)
    if words is None:
        return of_request(fault)
    return NetworkError(f"{words.format(host=host)}: {fault}", retry_elsewhere=True)


def of_request(fault: NeutronFault) -> NetworkError:
    """Of a wish that has nothing to do with any host."""
    if fault.kind in _WHATEVER_HOST:
        words, whose = _WHATEVER_HOST[fault.kind]
        return NetworkError(f"{words}: {fault}", fault=whose)
    if fault.status in (401, 403):
        return NetworkError(f"Neutron does not allow it: {fault}", fault=NetworkFault.FORBIDDEN)
    whose = NetworkFault.CONFLICT if fault.status == 409 else NetworkFault.BAD_REQUEST
    return NetworkError(f"Neutron refuses: {fault}", fault=whose)
