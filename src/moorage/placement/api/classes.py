"""`/resource_classes`: the kinds of things that providers have."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import NO_CONTENT, Reply, no_content
from moorage.placement.api import schemas
from moorage.placement.api.refusals import refusing
from moorage.placement.api.writers import writable_trees
from moorage.placement.errors import NameExists, NameInUse, StandardName
from moorage.placement.microversions import Microversion
from moorage.placement.service import PlacementService
from moorage.placement.store import names


def index(service: PlacementService, call: Call) -> Reply:
    """List resource classes."""
    with service.database.read() as connection:
        found = names.all_classes(connection)
    newest = max((resource_class.changed_at for resource_class in found), default=utcnow())
    return Reply(
        body={"resource_classes": [_body(call, resource_class.name) for resource_class in found]},
        last_modified=newest,
    )


def show(service: PlacementService, call: Call) -> Reply:
    """Show a resource class."""
    with service.database.read() as connection:
        found = names.find_class(connection, call.params["name"])
    return Reply(body=_body(call, found.name), last_modified=found.changed_at)


def create(service: PlacementService, call: Call) -> Reply:
    """Create a custom resource class."""
    name = call.json()["name"]
    if not service.database.transact(lambda connection: names.ensure_class(connection, name)):
        raise HttpError(409, f"Conflicting resource class already exists: {name}")
    return Reply(201, headers=call.location(_path(name)))


def update(service: PlacementService, call: Call) -> Reply:
    """Create a custom resource class if it does not exist yet; below 1.7, rename one."""
    if call.version < Microversion.CLASSES_ENSURED:
        return _rename(service, call)
    name = call.params["name"]
    problem = schemas.NAME_CLASS.problem({"name": name})
    if problem is not None:
        raise HttpError(400, f"JSON does not validate: {problem}")
    made = service.database.transact(lambda connection: names.ensure_class(connection, name))
    return Reply(201 if made else NO_CONTENT, headers=call.location(_path(name)))


def _rename(service: PlacementService, call: Call) -> Reply:
    call.require_json()
    writable_trees(service, call).admit_rename(call.params["name"])
    old, new = call.params["name"], schemas.NAME_CLASS.load(call.body())["name"]

    def rename(connection: Connection) -> None:
        names.rename_class(connection, old, new)

    with refusing({NameExists: (409, "{error}"), StandardName: (400, "{error}")}):
        service.database.transact(rename)
    return Reply(body=_body(call, new))


def delete(service: PlacementService, call: Call) -> Reply:
    """Delete a custom resource class."""
    refused = "Error in delete resource class: {error}"
    with refusing({StandardName: (400, refused), NameInUse: (409, refused)}):
        service.database.transact(lambda connection: names.delete_class(connection, call.params["name"]))
    return no_content()


def _path(name: str) -> str:
    return f"/resource_classes/{name}"


def _body(call: Call, name: str) -> dict[str, Any]:
    return {"name": name, "links": [{"rel": "self", "href": call.url(_path(name))}]}
