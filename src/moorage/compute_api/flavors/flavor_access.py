"""`/flavors/{flavor_id}/os-flavor-access` and `/action`: which projects may use a private flavor."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.flavors import flavors
from moorage.compute.flavors.flavors import Flavor, FlavorNotPrivate
from moorage.compute_api.endpoint import RULE
from moorage.compute_api.flavors.flavors import visible_to
from moorage.compute_api.microversions import Microversion
from moorage.compute_api.service import ComputeService
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply

ADD = f"{RULE}os-flavor-access:add_tenant_access"
REMOVE = f"{RULE}os-flavor-access:remove_tenant_access"


def index(service: ComputeService, call: Call) -> Reply:
    """List the projects that may use a private flavor."""
    with service.database.read() as connection:
        flavor = flavors.find(connection, call.params["flavor_id"], visible_to=visible_to(call))
        if flavor.is_public:
            raise FlavorNotPrivate
        return Reply(body=_body(connection, flavor))


def act(service: ComputeService, call: Call) -> Reply:
    """Let a project use a private flavor, or stop it."""
    ((action, asked),) = call.json().items()
    call.authorize(ADD if action == "addTenantAccess" else REMOVE, {})
    return Reply(
        body=service.database.transact(lambda connection: _act(connection, call, action, asked["tenant"]))
    )


def _act(connection: Connection, call: Call, action: str, project_id: str) -> dict[str, Any]:
    flavor = flavors.find(connection, call.params["flavor_id"], visible_to=visible_to(call))
    if action == "removeTenantAccess":
        flavors.disallow(connection, flavor, project_id)
    else:
        if flavor.is_public and call.version >= Microversion.PUBLIC_FLAVORS_WITHOUT_ACCESS_LIST:
            raise HttpError(409, "Can not add access to a public flavor.")
        flavors.allow(connection, flavor, project_id)
    return _body(connection, flavor)


def _body(connection: Connection, flavor: Flavor) -> dict[str, Any]:
    allowed = flavors.projects(connection, flavor)
    return {"flavor_access": [{"flavor_id": flavor.flavorid, "tenant_id": project} for project in allowed]}
