"""`/os-server-groups`: servers that shall be together, or apart."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.quotas.limits import in_force
from moorage.compute.servers import server_groups
from moorage.compute.servers.server_groups import ANTI_AFFINITY, ServerGroup
from moorage.compute_api.endpoint import RULE, is_admin, own_project, owner_of
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.service import ComputeService
from moorage.core.numbers import bounded
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, no_content

ALL_PROJECTS = f"{RULE}os-server-groups:index:all_projects"


def index(service: ComputeService, call: Call) -> Reply:
    """List server groups."""
    query = call.checked_query()
    project_id: str | None = call.caller.project_id or ""
    if "all_projects" in query and is_admin(call):
        call.authorize(ALL_PROJECTS, own_project(call))
        project_id = None
    most = service.settings.max_limit
    limit = min(int(query.get("limit") or most), most) or most
    with service.database.snapshot() as connection:
        found = server_groups.listed(
            connection, project_id, limit=limit, offset=bounded(int(query.get("offset") or 0))
        )
    return Reply(body={"server_groups": [_body(call, group) for group in found]})


def show(service: ComputeService, call: Call) -> Reply:
    """Show a server group."""
    with service.database.snapshot() as connection:
        group = _find(connection, call)
    return Reply(body={"server_group": _body(call, group)})


def create(service: ComputeService, call: Call) -> Reply:
    """Create a server group."""
    asked = call.json()["server_group"]
    policy = asked["policy"] if call.version >= Microversion.RULES_OF_SERVER_GROUPS else asked["policies"][0]
    rules = {name: int(value) for name, value in asked.get("rules", {}).items()}
    if rules and policy != ANTI_AFFINITY:
        raise HttpError(400, "Only anti-affinity policy supports rules.")
    project_id, user_id = call.caller.project_id or "", call.caller.user_id or ""

    service.limits.fetch(project_id)

    def add(connection: Connection) -> ServerGroup:
        return server_groups.create(
            connection,
            project_id=project_id,
            user_id=user_id,
            name=asked["name"],
            policy=policy,
            rules=rules,
            limits=in_force(service.limits, connection, project_id, user_id),
        )

    return Reply(body={"server_group": _body(call, service.database.transact(add))})


def delete(service: ComputeService, call: Call) -> Reply:
    """Delete a server group; its servers stay."""

    def forget(connection: Connection) -> None:
        server_groups.delete(connection, _find(connection, call))

    service.database.transact(forget)
    return no_content()


def _find(connection: Connection, call: Call) -> ServerGroup:
    """To others than administrators, a group of another project is not there."""
    project_id = None if is_admin(call) else call.caller.project_id or ""
    group = server_groups.find(connection, call.params["group_id"], project_id)
    call.admit(owner_of(group))
    return group


def _body(call: Call, group: ServerGroup) -> dict[str, Any]:
    body: dict[str, Any] = {"id": group.uuid, "name": group.name, "members": group.members}
    if call.version >= Microversion.RULES_OF_SERVER_GROUPS:
        body |= {"policy": group.policy, "rules": group.rules}
    else:
        body |= {"policies": [group.policy], "metadata": {}}
    if call.version >= Microversion.OWNERS_OF_SERVER_GROUPS:
        body |= {"project_id": group.project_id, "user_id": group.user_id}
    return body
