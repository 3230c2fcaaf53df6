"""Security groups of a server's ports: `/servers/{id}/os-security-groups`, and the actions on them."""

from __future__ import annotations

from functools import partial
from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.ports import group_names, interfaces
from moorage.compute.servers import servers
from moorage.compute_api.ports.server_networks import AT_ATTACH, requester_of, told
from moorage.compute_api.servers.servers import find, lock
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.reply import Reply, empty
from moorage.network.contract import SecurityGroup, SecurityGroupRule

_EVERYBODY = "0.0.0.0/0"


def _change(joins: bool, service: ComputeService, call: Call, argument: Any) -> Reply:
    with service.database.read() as connection:
        server = find(connection, call)
    with told(AT_ATTACH):
        holding, requester = interfaces.server_ports_of(server), requester_of(call)
        name = service.network.regroup(requester, holding, argument["name"], joins=joins)

    def keep(connection: Connection) -> None:
        found = lock(connection, call)
        servers.update(connection, found.id, request=group_names.changed(found.request, name, joins=joins))

    service.database.transact(keep)
    return empty(202)


def index(service: ComputeService, call: Call) -> Reply:
    """List the security groups of a server."""
    with service.database.read() as connection:
        server = find(connection, call)
    with told(AT_ATTACH):
        found = service.network.security_groups(requester_of(call), interfaces.server_ports_of(server))
    ordered = sorted(found, key=lambda group: (group.project_id, group.name))
    return Reply(body={"security_groups": [_shown(group) for group in ordered]})


def _shown(group: SecurityGroup) -> dict[str, Any]:
    """A rule that lets in a group which whoever asks can't see is left out."""
    visible = [rule for rule in group.rules if not rule.remote_group_id or rule.remote_group_name]
    return {
        "id": group.id,
        "name": group.name,
        "description": group.description,
        "tenant_id": group.project_id,
        "rules": [_rule(group, rule) for rule in visible],
    }


def _rule(group: SecurityGroup, rule: SecurityGroupRule) -> dict[str, Any]:
    first, last = _ports(rule)
    remote = {"name": rule.remote_group_name, "tenant_id": rule.remote_group_project_id}
    return {
        "id": rule.id,
        "parent_group_id": group.id,
        "ip_protocol": rule.protocol,
        "from_port": first,
        "to_port": last,
        "group": remote if rule.remote_group_id else {},
        "ip_range": {} if rule.remote_group_id else {"cidr": rule.remote_ip_prefix or _EVERYBODY},
    }


def _ports(rule: SecurityGroupRule) -> tuple[int | None, int | None]:
    """As the API has always numbered all of them."""
    first, last = rule.port_range_min, rule.port_range_max
    if rule.protocol is None or first is not None or last is not None:
        return first, last
    return (1, 65535) if rule.protocol.lower() in ("tcp", "udp") else (-1, -1)


add = partial(_change, True)
remove = partial(_change, False)
