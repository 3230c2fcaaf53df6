"""What Neutron is told of a port: when it is made, taken, bound and given back. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from moorage.network.contract import (
    Binding,
    NetworkError,
    PortGroup,
    PortNeeds,
    PortRecord,
    PortRequest,
    ServerPorts,
    VifBinding,
)
from moorage.network.network_cache import NetworkDescription
from moorage.network.neutron_link import Json

MADE_BY_US = "moorage"
"""The tag of all ports that we make."""
_VNIC_TYPE = "binding:vnic_type"
_MIGRATING_TO = "migrating_to"
"""In the binding profile: the host that a running server is about to go to."""
_MOST_HOSTS = 2
"""A server that moves is bound to two hosts at the most, one after the other."""


def tags(server_uuid: str) -> list[str]:
    """By which an operator finds the ports that we made, and those of one server."""
    return [MADE_BY_US, f"moorage-server={server_uuid}"]


def new(order: PortRequest, wish: Mapping[str, Any], position: int, network: NetworkDescription) -> Json:
    """A port that does not exist yet, without a host."""
    values: Json = {
        "network_id": wish["uuid"],
        "project_id": order.project_id,
        "device_id": order.server_uuid,
        "device_owner": f"compute:{order.zone}",
        "name": f"{order.name} {position}"[:255],
        "description": f"Interface {position}{_mark(order.server_uuid)}",
        "admin_state_up": True,
    }
    if wish.get("fixed_ip"):
        values["fixed_ips"] = [{"ip_address": wish["fixed_ip"]}]
    if order.security_groups:
        values["security_groups"] = list(order.security_groups)
    if network.names_ports and order.hostname:
        values["dns_name"] = order.hostname
    if network.taggable:
        values["tags"] = tags(order.server_uuid)  # some Neutrons heed it, others want it said once more
    return values


def _mark(server_uuid: str) -> str:
    """How the description of a port ends that we made for a server: tags can't be had everywhere."""
    return f" of server {server_uuid}, made by Moorage"


_MARK = re.compile(f"{re.escape(_mark('@')).replace('@', '([0-9a-f-]{36})')}$")


def made_for(port: Mapping[str, Any]) -> str | None:
    """The server that we made it for, as its description says; None if somebody else made it."""
    found = _MARK.search(port.get("description") or "")
    return None if found is None else found[1]


def is_stray(port: Mapping[str, Any], holding: ServerPorts) -> bool:
    """Whether we made it for the server, which does not know it."""
    known = {record.id for record in holding.ports} | holding.brought
    mark = _mark(holding.server_uuid)
    return port["id"] not in known and (port.get("description") or "").endswith(mark)


def made_before(spare: list[Json], wish: Mapping[str, Any]) -> Json | None:
    """A port that was made for this wish, and is spare no longer; equal wishes are worth the same."""
    for index, port in enumerate(spare):
        addresses = {fixed["ip_address"] for fixed in port["fixed_ips"]}
        if port["network_id"] == wish["uuid"] and wish.get("fixed_ip") in {None, *addresses}:
            return spare.pop(index)
    return None


def taking(order: PortRequest, port: Mapping[str, Any], network: NetworkDescription) -> Json:
    """What makes a port of the user's the server's."""
    values: Json = {"device_id": order.server_uuid, "device_owner": f"compute:{order.zone}"}
    name = port.get("dns_name") or ""
    if name and order.hostname and name != order.hostname.lower():
        raise NetworkError(
            f"Port {port['id']} not usable for instance {order.server_uuid}: its dns_name is {name}, the "
            f"instance's hostname is {order.hostname}."
        )
    if network.names_ports and order.hostname and not name:
        values["dns_name"] = order.hostname
    return values


def resources(port: Mapping[str, Any]) -> PortNeeds:
    """From its `resource_request`: groups with names, or in its older form just one group's content."""
    asked = port.get("resource_request") or {}
    if asked.get("resources"):
        group = PortGroup(port["id"], asked["resources"], asked.get("required") or [])
        return PortNeeds(groups=[group], plain=True)
    groups = [
        PortGroup(group["id"], group["resources"], group["required"])
        for group in asked.get("request_groups") or []
    ]
    return PortNeeds(groups=groups, same_subtree=asked.get("same_subtree") or [])


def bound(binding: Binding, record: PortRecord) -> Json:
    """What binds a port to a host, unless the host's driver does."""
    values: Json = {"device_id": binding.server_uuid}
    if binding.zone:
        values["device_owner"] = f"compute:{binding.zone}"
    if binding.by_driver:
        return values
    values["binding:host_id"] = binding.host
    if record.needs.groups:
        values["binding:profile"] = profile(binding, record)
    return values


def allocation(binding: Binding, record: PortRecord) -> dict[str, str]:
    """Who serves each of the port's groups at that host: as just decided, or as when it was there before."""
    if not binding.providers:
        return record.served.get(binding.host, {})
    return {
        group.id: binding.providers[group.suffix][0]
        for group in record.needs.groups
        if binding.providers.get(group.suffix)
    }


def profile(binding: Binding, record: PortRecord) -> Json:
    """What the port came with, and who serves it at that host."""
    serving = allocation(binding, record)
    if not serving:
        return record.profile
    told = next(iter(serving.values())) if record.needs.plain else serving
    return {**record.profile, "allocation": told}


def served(binding: Binding, record: PortRecord) -> dict[str, dict[str, str]]:
    """By host: who serves the port there, so that it can be said again if the server comes back."""
    serving = allocation(binding, record)
    others = [(host, who) for host, who in record.served.items() if host != binding.host]
    known = [*others, (binding.host, serving)] if serving else others
    return dict(known[-_MOST_HOSTS:])


def vif_binding(told: Mapping[str, Any], prefix: str = "") -> VifBinding:
    """Of a binding; a port tells that of the host that counts, with a prefix."""
    return VifBinding(
        told.get(f"{prefix}vif_type") or "",
        told.get(f"{prefix}vif_details") or {},
        told.get(f"{prefix}vnic_type") or "normal",
    )


def migrating_to(port: Mapping[str, Any]) -> str:
    """The host that Neutron was told that the port will go to; empty if there is none."""
    return str((port.get("binding:profile") or {}).get(_MIGRATING_TO, ""))


def announced(port: Mapping[str, Any], host: str) -> Json:
    """Its binding profile, once it will go to this host."""
    return {**settled(port), _MIGRATING_TO: host}


def settled(port: Mapping[str, Any]) -> Json:
    """Its binding profile, if it goes nowhere."""
    told = port.get("binding:profile") or {}
    return {name: value for name, value in told.items() if name != _MIGRATING_TO}


def without_host(port: Mapping[str, Any], record: PortRecord) -> Json:
    """An address that the segment gave goes with it, else the port could not go to another segment. Ironic
    makes ports ones for machines, and leaves them so."""
    values: Json = {"binding:host_id": ""}
    if record.deferred:
        values["fixed_ips"] = []
    if record.needs.groups:
        values["binding:profile"] = record.profile
    if record.came_as and port.get(_VNIC_TYPE, record.came_as) != record.came_as:
        values[_VNIC_TYPE] = record.came_as
    return values


def given_back(port: Mapping[str, Any], record: PortRecord | None) -> Json:
    """What a port of the user's was before it was the server's."""
    values: Json = {"binding:host_id": ""} if record is None else without_host(port, record)
    if migrating_to(port):
        values.setdefault("binding:profile", settled(port))
    if "dns_name" in port and (record is None or record.named):
        values["dns_name"] = ""
    return {**values, "device_id": "", "device_owner": ""}
