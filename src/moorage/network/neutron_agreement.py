"""Agreement: whether a user can have the networks that they ask for, with the user's own token.

Neutron decides what the user may see; what it does not show does not exist for this user.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from moorage.network import neutron_topology
from moorage.network.contract import AgreedNetworks, NetworkError, NetworkFault, Networks
from moorage.network.neutron_link import Json, NeutronFault, NeutronLink


class Agreement:
    def __init__(self, link: NeutronLink, project_id: str) -> None:
        self._link = link
        self._project_id = project_id

    def reach(self, networks: Networks, security_groups: Sequence[str], count: int) -> AgreedNetworks:
        if networks == "none":
            return AgreedNetworks("none")
        if isinstance(networks, str):
            found = self._usable_networks()
            if networks == "any" and not found:
                return AgreedNetworks("none")
            if networks == "auto" and not found:
                return self._reach_topology(security_groups, count)
            networks = [{"uuid": self._only(found)}]
        return self._reach(networks, security_groups, count)

    def _reach(
        self, wishes: list[dict[str, Any]], security_groups: Sequence[str], count: int
    ) -> AgreedNetworks:
        for wish in wishes:
            if wish.get("port"):
                self._check_port(wish["port"])
        made = [wish for wish in wishes if not wish.get("port")]
        self._check_networks(made)
        groups = self._security_groups(security_groups) if made else []
        if made:
            self._check_quota(len(made) * count)
        return AgreedNetworks(wishes, groups)

    def _reach_topology(self, security_groups: Sequence[str], count: int) -> AgreedNetworks:
        """Nothing is made while the user may still be refused: whoever prepares the ports asks for it."""
        neutron_topology.require_possible(self._link, self._project_id)
        groups = self._security_groups(security_groups)
        self._check_quota(count)
        return AgreedNetworks("auto", groups)

    def network_there(self) -> str | None:
        """The one network that there is to choose from, if there is any."""
        usable = self._usable_networks()
        return self._only(usable) if usable else None

    def _usable_networks(self) -> set[str]:
        own = self._link.find("networks", [("project_id", self._project_id)])
        shared = self._link.find("networks", [("shared", "True")])
        return {
            network["id"]
            for network in [*own, *shared]
            if network["subnets"] and network["admin_state_up"] and not network.get("router:external")
        }

    def _only(self, usable: set[str]) -> str:
        if not usable:
            raise NetworkError(
                f"No specific network was requested and none are available for project '{self._project_id}'."
            )
        if len(usable) > 1:
            raise NetworkError(
                "Multiple possible networks found, use a Network ID to be more specific.",
                fault=NetworkFault.AMBIGUOUS,
            )
        return min(usable)

    def _check_port(self, port_id: str) -> None:
        try:
            port = self._link.show("ports", port_id)
        except NeutronFault as fault:
            if fault.status != 404:
                raise
            raise _not_found("Port", port_id) from fault
        if port["project_id"] != self._project_id:
            raise _not_found("Port", port_id)
        if port["device_id"]:
            raise NetworkError(f"Port {port_id} is still in use.", fault=NetworkFault.CONFLICT)
        if not port["fixed_ips"] and port.get("ip_allocation") not in ("deferred", "none"):
            raise NetworkError(f"Port {port_id} requires a FixedIP in order to be used.")

    def _check_networks(self, wishes: Sequence[dict[str, Any]]) -> None:
        wanted = sorted({wish["uuid"] for wish in wishes})
        known = {network["id"]: network for network in self._link.find_by("networks", "id", wanted)}
        for uuid in wanted:
            if uuid not in known:
                raise _not_found("Network", uuid)
            self._check_network(known[uuid])
        for wish in wishes:
            if wish.get("fixed_ip"):
                self._check_address(wish["uuid"], wish["fixed_ip"])

    def _check_network(self, network: Json) -> None:
        uuid = network["id"]
        if not network["subnets"]:
            raise NetworkError(f"Network {uuid} requires a subnet in order to boot instances on.")
        if network.get("router:external") and not network.get("shared"):
            raise NetworkError(
                f"It is not allowed to create an interface on external network {uuid}",
                fault=NetworkFault.FORBIDDEN,
            )

    def _check_address(self, network_id: str, address: str) -> None:
        subnets = self._link.find("subnets", [("network_id", network_id)])
        if not any(ip_address(address) in ip_network(subnet["cidr"]) for subnet in subnets):
            raise NetworkError(f"Fixed IP address {address} is not of network {network_id}.")
        filters = [("network_id", network_id), ("fixed_ips", f"ip_address={address}")]
        if self._link.find_some("ports", filters):
            raise NetworkError(
                f"Fixed IP address {address} is already in use on network {network_id}.",
                fault=NetworkFault.TAKEN,
            )

    def _security_groups(self, names: Sequence[str]) -> list[str]:
        """Neutron gives a port the default group by itself, unless others are named."""
        if set(names) <= {"default"}:
            return []
        own = self._link.find("security-groups", [("project_id", self._project_id)])
        return [self._security_group(name, own) for name in names]

    def _security_group(self, name: str, own: Sequence[Json]) -> str:
        for key in ("id", "name"):
            found = [group["id"] for group in own if group[key] == name]
            if len(found) > 1:
                raise NetworkError(
                    f"Multiple security groups found matching '{name}'. Use an ID to be more specific.",
                    fault=NetworkFault.CONFLICT,
                )
            if found:
                return str(found[0])
        raise NetworkError(f"Security group {name} not found.")

    def _check_quota(self, count: int) -> None:
        quota = self._link.show("quotas", f"{self._project_id}/details")["port"]
        used = int(quota["used"]) + int(quota["reserved"])
        if 0 <= int(quota["limit"]) < used + count:
            raise NetworkError("Maximum number of ports exceeded", fault=NetworkFault.FORBIDDEN)


def _not_found(what: str, uuid: str) -> NetworkError:
    return NetworkError(f"{what} {uuid} could not be found.", fault=NetworkFault.NOT_FOUND)
