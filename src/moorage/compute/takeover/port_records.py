"""From what Nova remembers of a server's network to ports as we remember them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.compute.takeover.nova_objects import Json
from moorage.network.contract import HostRoute, PortRecord, PortSubnet


def of(network_info: Sequence[Json], tags: Mapping[str, str]) -> list[PortRecord]:
    """`tags` are by port. What Nova has not made stays its user's when the server goes."""
    return [_port(vif, tags.get(vif["id"])) for vif in network_info]


def wishes(ports: Sequence[PortRecord]) -> str | list[dict[str, Any]]:
    """What a user would have asked for who wants just these."""
    if not ports:
        return "none"
    return [
        {"uuid": port.network_id} if port.ours else {"uuid": port.network_id, "port": port.id}
        for port in ports
    ]


def _port(vif: Json, tag: str | None) -> PortRecord:
    network = vif.get("network") or {}
    subnets = network.get("subnets") or []
    ips = [ip for subnet in subnets for ip in subnet.get("ips") or []]
    ours = not vif.get("preserve_on_delete")
    vnic_type = vif.get("vnic_type") or "normal"
    return PortRecord(
        id=vif["id"],
        network_id=network.get("id") or "",
        network_name=network.get("label") or "",
        ours=ours,
        mac=vif.get("address") or "",
        addresses=[ip["address"] for ip in ips],
        floating=[floating["address"] for ip in ips for floating in ip.get("floating_ips") or []],
        profile=vif.get("profile") or {},
        tag=tag,
        vif_type=vif.get("type") or "",
        vif_details=vif.get("details") or {},
        vnic_type=vnic_type,
        came_as="" if ours else vnic_type,
        mtu=(network.get("meta") or {}).get("mtu") or 0,
        subnets=[_subnet(subnet) for subnet in subnets],
    )


def _subnet(subnet: Json) -> PortSubnet:
    meta = subnet.get("meta") or {}
    return PortSubnet(
        cidr=subnet.get("cidr") or "",
        ip_version=subnet.get("version") or 4,
        gateway_ip=(subnet.get("gateway") or {}).get("address") or "",
        dns_nameservers=[dns["address"] for dns in subnet.get("dns") or []],
        host_routes=[
            HostRoute(route["cidr"], (route.get("gateway") or {}).get("address") or "")
            for route in subnet.get("routes") or []
        ],
        enable_dhcp=bool(meta.get("enable_dhcp") or meta.get("dhcp_server")),
        ipv6_address_mode=meta.get("ipv6_address_mode") or "",
    )
