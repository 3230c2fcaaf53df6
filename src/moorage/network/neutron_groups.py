"""Security groups of servers that are there: on each of their ports, as whoever asks sees the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from moorage.network import neutron_faults
from moorage.network.contract import (
    NetworkError,
    NetworkFault,
    Requester,
    SecurityGroup,
    SecurityGroupRule,
)
from moorage.network.neutron_link import Json, NeutronFault, NeutronLink

_MOST_TRIES = 3
_STALE = 412
"""Somebody has changed the port since it was looked at."""


class SecurityGroups:
    """A late call is refused: it names the revision of the port that it was decided on."""

    def __init__(self, link: NeutronLink) -> None:
        self._link = link

    def change(self, requester: Requester, server_uuid: str, name: str, *, joins: bool) -> str:
        """Put all ports of a server into a group, or take them out; the group's name."""
        try:
            group = self._group(requester, name)
            ports = self._link.find("ports", [("device_id", server_uuid)])
            self._require_fit(group, ports, server_uuid, joins=joins)
            for port in ports:
                self._update(port, group["id"], joins=joins)
        except NeutronFault as fault:
            raise neutron_faults.of_request(fault) from fault
        return str(group["name"])

    def of_server(self, requester: Requester, server_uuid: str) -> list[SecurityGroup]:
        """With the names of the groups that their rules let in."""
        link = self._link.as_user(requester.token)
        try:
            ports = self._link.find("ports", [("device_id", server_uuid)])
            known = {one["id"]: one for one in self._found(link, _of_ports(ports))}
            own = list(known.values())
            others = {str(rule["remote_group_id"]) for group in own for rule in _entering(group)}
            known |= {one["id"]: one for one in self._found(link, others - {"None", *known})}
        except NeutronFault as fault:
            raise neutron_faults.of_request(fault) from fault
        return [_told(group, known) for group in own]

    def _found(self, link: NeutronLink, ids: set[str]) -> list[Json]:
        return link.find_by("security-groups", "id", sorted(ids)) if ids else []

    def _group(self, requester: Requester, name: str) -> Json:
        own = self._link.as_user(requester.token).find(
            "security-groups", [("project_id", requester.project_id)]
        )
        for key in ("id", "name"):
            found = [group for group in own if group[key] == name]
            if len(found) > 1:
                raise NetworkError(
                    f"Multiple security groups found matching '{name}'. Use an ID to be more specific.",
                    fault=NetworkFault.CONFLICT,
                )
            if found:
                return found[0]
        raise NetworkError(
            f"Security group {name} is not found for project {requester.project_id}",
            fault=NetworkFault.NOT_FOUND,
        )

    def _require_fit(self, group: Json, ports: list[Json], server_uuid: str, *, joins: bool) -> None:
        if not ports:
            raise NetworkError(
                f"instance_id {server_uuid} could not be found as device id on any ports",
                fault=NetworkFault.NOT_FOUND,
            )
        if joins and not all(port.get("port_security_enabled", True) for port in ports):
            raise NetworkError(
                "Network requires port_security_enabled and subnet associated in order to apply security "
                "groups."
            )
        if not joins and not any(group["id"] in port["security_groups"] for port in ports):
            raise NetworkError(
                f"Security group {group['name']} not associated with the instance {server_uuid}",
                fault=NetworkFault.NOT_FOUND,
            )

    def _update(self, port: Json, group_id: str, *, joins: bool) -> None:
        for left in reversed(range(_MOST_TRIES)):
            others = [one for one in port["security_groups"] if one != group_id]
            wanted = [*others, group_id] if joins else others
            if wanted == port["security_groups"]:
                return
            values = {"security_groups": wanted}
            try:
                self._link.update("ports", port["id"], values, port["revision_number"])
                return
            except NeutronFault as fault:
                if fault.status != _STALE or not left:
                    raise
            port = self._link.show("ports", port["id"])


def _of_ports(ports: Sequence[Json]) -> set[str]:
    return {group_id for port in ports for group_id in port["security_groups"]}


def _entering(group: Json) -> list[Json]:
    return [rule for rule in group["security_group_rules"] if rule["direction"] == "ingress"]


def _told(group: Json, known: Mapping[str, Json]) -> SecurityGroup:
    rules = []
    for rule in _entering(group):
        remote = known.get(rule["remote_group_id"], {})
        rules.append(
            SecurityGroupRule(
                rule["id"],
                rule["protocol"],
                rule["port_range_min"],
                rule["port_range_max"],
                rule["remote_group_id"],
                remote.get("name", ""),
                remote.get("project_id", ""),
                rule["remote_ip_prefix"],
            )
        )
    return SecurityGroup(group["id"], group["name"], group["description"], group["project_id"], rules)
