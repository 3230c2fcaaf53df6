"""What a guest can know of itself, as documents: the config drive and the metadata service say the same.

The names and forms are those that cloud-init and its like look for, OpenStack's and EC2's.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from moorage.drivers.contract import DriverError, ServerSpec

META_DATA = "meta_data.json"
NETWORK_DATA = "network_data.json"
USER_DATA = "user_data"
VENDOR_DATA = "vendor_data.json"
VENDOR_DATA_2 = "vendor_data2.json"
CONTENT = "content"

OPENSTACK_VERSIONS = ("2012-08-10", "2018-08-27", "latest")
"""Directories below `openstack`: readers take the newest that they know, and all of them hold the same."""
EC2_VERSIONS = ("2009-04-04", "latest")
"""Likewise below `ec2`."""


class GuestIdentity(msgspec.Struct, frozen=True):
    """A server, as it is told about itself."""

    uuid: str
    name: str
    hostname: str
    project_id: str
    metadata: Mapping[str, str] = {}
    key_name: str | None = None
    public_key: str | None = None
    user_data: str | None = None
    """In base64, as users send it."""
    files: Sequence[Mapping[str, str]] = ()
    """`path`, and `contents` likewise."""
    ports: Sequence[Mapping[str, Any]] = ()
    availability_zone: str = ""
    launch_index: int = 0
    reservation_id: str = ""
    image_id: str = ""
    kernel_id: str = ""
    ramdisk_id: str = ""
    flavor_name: str = ""
    random_seed: bytes = b""
    """For the guest's random number generator; may differ each time."""
    admin_password: str = ""
    vendor_data: Mapping[str, Any] = {}

    @classmethod
    def of(cls, spec: ServerSpec) -> GuestIdentity:
        image = spec.image or {}
        properties = image.get("properties") or {}
        return cls(
            uuid=spec.uuid,
            name=spec.name,
            hostname=spec.hostname or spec.name,
            project_id=spec.project_id,
            metadata=spec.metadata,
            key_name=spec.key_name,
            public_key=spec.public_key,
            user_data=spec.user_data,
            files=spec.files,
            ports=spec.network,
            availability_zone=spec.availability_zone,
            launch_index=spec.launch_index,
            reservation_id=spec.reservation_id,
            image_id=str(image.get("id", "")),
            kernel_id=str(properties.get("kernel_id", "")),
            ramdisk_id=str(properties.get("ramdisk_id", "")),
            flavor_name=str(spec.flavor.get("name", "")),
        )


def documents(guest: GuestIdentity) -> dict[str, bytes]:
    """OpenStack's, by name: what is in each directory of `OPENSTACK_VERSIONS`."""
    found = {
        META_DATA: msgspec.json.encode(_meta_data(guest)),
        NETWORK_DATA: msgspec.json.encode(network_data(guest.ports)),
        VENDOR_DATA: msgspec.json.encode(dict(guest.vendor_data)),
        VENDOR_DATA_2: msgspec.json.encode({}),
    }
    if guest.user_data:
        found[USER_DATA] = decoded(guest.user_data)
    return found


def contents(guest: GuestIdentity) -> dict[str, bytes]:
    """The files that came with the request, by the names that `meta_data.json` has for them: they are in the
    directory `CONTENT`, beside those of the versions."""
    return {f"{number:04}": decoded(file["contents"]) for number, file in enumerate(guest.files)}


def ec2_meta_data(guest: GuestIdentity) -> dict[str, Any]:
    """EC2's form: a tree of words, in which a dictionary is a directory and a list has one entry a line."""
    addresses = [str(address) for port in guest.ports for address in port.get("addresses", [])]
    floating = [str(address) for port in guest.ports for address in port.get("floating", [])]
    found: dict[str, Any] = {
        "ami-id": f"ami-{_short(guest.image_id)}",
        "ami-launch-index": guest.launch_index,
        "ami-manifest-path": "unavailable",
        "block-device-mapping": {"ami": "vda", "root": "/dev/vda"},
        "hostname": guest.hostname,
        "instance-action": "none",
        "instance-id": f"i-{_short(guest.uuid)}",
        "instance-type": guest.flavor_name,
        "local-hostname": guest.hostname,
        "local-ipv4": next((address for address in addresses if ":" not in address), ""),
        "placement": {"availability-zone": guest.availability_zone},
        "public-hostname": guest.hostname,
        "public-ipv4": next((address for address in floating if ":" not in address), ""),
        "reservation-id": guest.reservation_id,
        "security-groups": [],
    }
    if guest.kernel_id:
        found["kernel-id"] = f"aki-{_short(guest.kernel_id)}"
    if guest.ramdisk_id:
        found["ramdisk-id"] = f"ari-{_short(guest.ramdisk_id)}"
    if guest.public_key:
        found["public-keys"] = {"0": {"_name": f"0={guest.key_name}", "openssh-key": guest.public_key}}
    return found


def decoded(sent: str) -> bytes:
    """Users send data in base64; it is told as it shall be read, text or not."""
    try:
        return base64.b64decode(sent)
    except (binascii.Error, ValueError) as error:
        raise DriverError(f"user data or a file can't be decoded: {error}") from error


def network_data(ports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    links: list[dict[str, Any]] = []
    networks: list[dict[str, Any]] = []
    services: list[dict[str, Any]] = []
    members: list[dict[str, Any]] = []
    for number, port in enumerate(ports):
        link = _link(number, port)
        links.append(link)
        members += _bonded(port)
        subnets: Sequence[Mapping[str, Any]] = port.get("subnets") or ()
        for address in port.get("addresses", []):
            subnet = _subnet_of(address, subnets)
            networks.append(_network(len(networks), link["id"], port, address, subnet))
        for subnet in subnets:
            found = [{"type": "dns", "address": server} for server in subnet.get("dns_nameservers") or ()]
            services += [service for service in found if service not in services]
    return {"links": links + members, "networks": networks, "services": services}


def _meta_data(guest: GuestIdentity) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "uuid": guest.uuid,
        "name": guest.name,
        "hostname": guest.hostname,
        "availability_zone": guest.availability_zone or None,
        "launch_index": guest.launch_index,
        "project_id": guest.project_id,
        "meta": dict(guest.metadata),
        "devices": _tagged(guest.ports),
    }
    if guest.public_key:
        name = guest.key_name or "key"
        meta["public_keys"] = {name: guest.public_key}
        meta["keys"] = [{"name": name, "type": "ssh", "data": guest.public_key}]
    if guest.files:
        meta["files"] = [
            {"path": file["path"], "content_path": f"/{CONTENT}/{number:04}"}
            for number, file in enumerate(guest.files)
        ]
    if guest.random_seed:
        meta["random_seed"] = base64.b64encode(guest.random_seed).decode()
    if guest.admin_password:
        meta["admin_pass"] = guest.admin_password
    return meta


def _tagged(ports: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Devices that the user gave a name: the guest finds them by their hardware address."""
    return [
        {"type": "nic", "bus": "none", "address": "none", "mac": port.get("mac", ""), "tags": [port["tag"]]}
        for port in ports
        if port.get("tag")
    ]


def _link(number: int, port: Mapping[str, Any]) -> dict[str, Any]:
    link = {
        "id": f"link{number}",
        "type": port.get("vif_type") or "phy",
        "ethernet_mac_address": port.get("mac", ""),
        "vif_id": port["id"],
    }
    if port.get("bond"):
        bond = port["bond"]
        names = [member["id"] for member in bond["links"]]
        link |= {"type": "bond", "bond_mode": bond["mode"], "bond_links": names, **bond["properties"]}
    return {**link, "mtu": port["mtu"]} if port.get("mtu") else link


def _bonded(port: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The cards that a bond is made of, each a link of its own."""
    return [
        {"id": member["id"], "type": "phy", "ethernet_mac_address": member["mac"]}
        for member in (port.get("bond") or {}).get("links", ())
    ]


def _network(
    number: int, link: str, port: Mapping[str, Any], address: str, subnet: Mapping[str, Any] | None
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": f"network{number}",
        "type": "ipv6" if ":" in address else "ipv4",
        "link": link,
        "ip_address": address,
        "network_id": port.get("network_id", ""),
    }
    if subnet is None:
        return found
    net = ipaddress.ip_network(subnet["cidr"], strict=False)
    found["netmask"] = str(net.netmask)
    found["routes"] = _routes(net, subnet)
    found["services"] = [{"type": "dns", "address": server} for server in subnet.get("dns_nameservers") or ()]
    return found


def _routes(
    net: ipaddress.IPv4Network | ipaddress.IPv6Network, subnet: Mapping[str, Any]
) -> list[dict[str, str]]:
    everything = "::" if net.version == 6 else "0.0.0.0"
    gateway = subnet.get("gateway_ip")
    routes = [{"network": everything, "netmask": everything, "gateway": str(gateway)}] if gateway else []
    for route in subnet.get("host_routes") or ():
        to = ipaddress.ip_network(route["destination"], strict=False)
        routes.append(
            {
                "network": str(to.network_address),
                "netmask": str(to.netmask),
                "gateway": str(route["nexthop"]),
            }
        )
    return routes


def _subnet_of(address: str, subnets: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    wanted = ipaddress.ip_address(address)
    for subnet in subnets:
        if wanted in ipaddress.ip_network(subnet["cidr"], strict=False):
            return subnet
    return None


def _short(uuid: str) -> str:
    return uuid.replace("-", "")[:8].ljust(8, "0")
