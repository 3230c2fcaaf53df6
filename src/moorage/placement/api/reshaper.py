"""`/reshaper`: move inventories between providers together with what is allocated from them."""

from __future__ import annotations

from typing import Any

from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, no_content
from moorage.placement.api.allocations import claim_from
from moorage.placement.api.refusals import refusing
from moorage.placement.api.writers import writable_trees
from moorage.placement.errors import (
    ConcurrentUpdate,
    ConflictError,
    ConsumerGenerationConflict,
    InventoryInUse,
    NotFoundError,
    UnknownProvider,
)
from moorage.placement.reshape import (
    Reshaped,
    ReshapedProviderChanged,
    ReshapedProviderNotFound,
)
from moorage.placement.reshape import (
    reshape as write_reshape,
)
from moorage.placement.service import PlacementService
from moorage.placement.store.inventories import Inventory


def reshape(service: PlacementService, call: Call) -> Reply:
    """Replace inventories and allocations of several providers and consumers in one transaction."""
    data = call.json()
    wanted = {
        uuid: Reshaped(
            body["resource_provider_generation"],
            {name: _inventory(name, inventory) for name, inventory in body["inventories"].items()},
        )
        for uuid, body in data["inventories"].items()
    }
    trees = writable_trees(service, call)
    claims = [claim_from(service, uuid, body, call.version) for uuid, body in data["allocations"].items()]
    with refusing(
        {
            ReshapedProviderNotFound: (400, "{error}"),
            ReshapedProviderChanged: (409, "{error}"),
            UnknownProvider: (400, "{error}"),
            ConsumerGenerationConflict: (409, "{error}"),
            ConcurrentUpdate: (409, "update conflict: {error}"),
            NotFoundError: (400, "malformed reshaper data: {error}"),
            InventoryInUse: (409, "update conflict: {error}"),
            ConflictError: (409, "Unable to allocate inventory: {error}"),
        }
    ):
        service.database.transact(lambda connection: write_reshape(connection, wanted, claims, trees))
    return no_content()


def _inventory(name: str, body: Any) -> Inventory:
    """The schema looks only at what is there for names that a class can have."""
    if not isinstance(body, dict):
        raise HttpError(400, f"JSON does not validate: no resource class can be called {name!r}")
    return Inventory.from_body(body)
