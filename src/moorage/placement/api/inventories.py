"""`/resource_providers/{uuid}/inventories`: what a provider has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.core.microversions import Version
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, no_content
from moorage.placement.api.refusals import CONCURRENT_UPDATE, refusing
from moorage.placement.api.writers import writable_trees
from moorage.placement.errors import (
    ClassNotFound,
    ConcurrentUpdate,
    InventoryInUse,
    InventoryNotFound,
    NotFoundError,
)
from moorage.placement.microversions import Microversion
from moorage.placement.service import PlacementService
from moorage.placement.store import inventories, providers
from moorage.placement.store.inventories import Inventory
from moorage.placement.store.providers import Provider


def index(service: PlacementService, call: Call) -> Reply:
    """List the inventories of a resource provider."""
    with service.database.snapshot() as connection:
        provider = providers.find(connection, call.params["uuid"])
        found = inventories.of_provider(connection, provider.id)
    return _many(provider, found)


def show(service: PlacementService, call: Call) -> Reply:
    """Show the inventory of one resource class of a resource provider."""
    uuid, class_name = call.params["uuid"], call.params["resource_class"]
    with service.database.snapshot() as connection:
        provider = providers.find(connection, uuid)
        found = inventories.of_provider(connection, provider.id).get(class_name)
    if found is None:
        raise HttpError(404, f"No inventory of class {class_name} for {uuid}")
    return _one(provider, found)


def create(service: PlacementService, call: Call) -> Reply:
    """Add an inventory to a resource provider."""
    uuid = call.params["uuid"]
    _must_exist(service, uuid)
    data = call.json()
    class_name = data["resource_class"]
    new = Inventory.from_body(data)
    refused = f"Unable to create inventory for resource provider {uuid}: "
    check_capacity(call.version, uuid, {class_name: new}, refused)
    trees = writable_trees(service, call)

    def add(connection: Connection) -> Provider:
        provider = providers.lock(connection, uuid, trees)
        inventories.add(connection, provider, class_name, new)
        return provider

    with refusing(
        {ConcurrentUpdate: (409, "Update conflict: {error}"), ClassNotFound: (400, refused + "{error}")}
    ):
        provider = service.database.transact(add)
    reply = _one(provider, new)
    reply.status = 201
    reply.headers |= call.location(f"/resource_providers/{uuid}/inventories/{class_name}")
    return reply


def update(service: PlacementService, call: Call) -> Reply:
    """Change the inventory of one resource class."""
    uuid, class_name = call.params["uuid"], call.params["resource_class"]
    _must_exist(service, uuid)
    data = call.json()
    new = Inventory.from_body(data)
    trees = writable_trees(service, call)

    def change(connection: Connection) -> Provider:
        provider = providers.lock(connection, uuid, trees)
        provider.expect_generation(data["resource_provider_generation"])
        check_capacity(call.version, uuid, {class_name: new})
        inventories.update(connection, provider, class_name, new)
        return provider

    missing = f"No inventory record with resource class for resource provider {uuid}: "
    with refusing(
        {
            ConcurrentUpdate: (409, "{error}"),
            InventoryNotFound: (400, missing + "{error}"),
            ClassNotFound: (404, "{error}"),
        }
    ):
        provider = service.database.transact(change)
    return _one(provider, new)


def replace(service: PlacementService, call: Call) -> Reply:
    """Set all inventories of a resource provider."""
    uuid = call.params["uuid"]
    _must_exist(service, uuid)
    data = call.json()
    new = {name: Inventory.from_body(body) for name, body in data["inventories"].items()}
    trees = writable_trees(service, call)

    def set_all(connection: Connection) -> Provider:
        provider = providers.lock(connection, uuid, trees)
        provider.expect_generation(data["resource_provider_generation"])
        check_capacity(call.version, uuid, new)
        inventories.replace(connection, provider, new)
        return provider

    unknown = f"Unknown resource class in inventory for resource provider {uuid}: "
    with refusing(
        {
            ConcurrentUpdate: (409, "{error}"),
            InventoryInUse: (409, "update conflict: {error}"),
            ClassNotFound: (400, unknown + "{error}"),
        }
    ):
        provider = service.database.transact(set_all)
    return _many(provider, new)


def clear(service: PlacementService, call: Call) -> Reply:
    """Delete all inventories of a resource provider."""
    trees = writable_trees(service, call)

    def remove_all(connection: Connection) -> None:
        inventories.replace(connection, providers.lock(connection, call.params["uuid"], trees), {})

    with refusing({InventoryInUse: (409, "{error}")}):
        service.database.transact(remove_all)
    return no_content()


def delete(service: PlacementService, call: Call) -> Reply:
    """Delete the inventory of one resource class."""
    uuid, class_name = call.params["uuid"], call.params["resource_class"]
    _must_exist(service, uuid)
    trees = writable_trees(service, call)

    def remove(connection: Connection) -> None:
        inventories.remove(connection, providers.lock(connection, uuid, trees), class_name)

    try:
        service.database.transact(remove)
    except InventoryInUse as error:
        detail = f"Unable to delete inventory of class {class_name}: {error}"
        raise HttpError(409, detail, code=CONCURRENT_UPDATE) from error
    except NotFoundError as error:
        raise HttpError(404, f"No inventory of class {class_name} found for delete: {error}") from error
    return no_content()


def check_capacity(
    version: Version, uuid: str, new: Mapping[str, Inventory], intro: str | None = None
) -> None:
    """Refuse more reserved than there is; up to 1.25 also as much as there is."""
    for class_name, inventory in new.items():
        if inventory.capacity < 0 or (inventory.capacity == 0 and version < Microversion.RESERVED_WHOLE):
            or_equal = "or equal to " if version < Microversion.RESERVED_WHOLE else ""
            than = f"greater than {or_equal}total"
            intro = intro or f"Unable to update inventory for resource provider {uuid}: "
            raise HttpError(
                400,
                f"{intro}Invalid inventory for '{class_name}' on resource provider '{uuid}'. "
                f"The reserved value is {than}.",
            )


def _must_exist(service: PlacementService, uuid: str) -> None:
    """A path that names nothing is a 404, whatever the body says."""
    with service.database.read() as connection:
        providers.find(connection, uuid)


def _one(provider: Provider, inventory: Inventory) -> Reply:
    body: dict[str, Any] = inventory.values()
    if provider.generation:
        body["resource_provider_generation"] = provider.generation
    return Reply(body=body, last_modified=inventory.updated_at or utcnow())


def _many(provider: Provider, found: Mapping[str, Inventory]) -> Reply:
    body = {
        "resource_provider_generation": provider.generation,
        "inventories": {name: inventory.values() for name, inventory in found.items()},
    }
    times = [inventory.updated_at for inventory in found.values() if inventory.updated_at]
    return Reply(body=body, last_modified=max(times, default=utcnow()))
