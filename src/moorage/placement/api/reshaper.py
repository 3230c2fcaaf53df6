"""`/reshaper`: move inventories between providers together with what is allocated from them."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, no_content
from moorage.placement import claims
from moorage.placement.api.allocations import claim_from
from moorage.placement.api.refusals import CONCURRENT_UPDATE, PROVIDER_NOT_FOUND, refusing
from moorage.placement.claims import Claim
from moorage.placement.errors import (
    ConcurrentUpdate,
    ConflictError,
    ConsumerGenerationConflict,
    InventoryInUse,
    NotFoundError,
    ProviderNotFound,
    UnknownProvider,
)
from moorage.placement.service import PlacementService
from moorage.placement.store import inventories, providers
from moorage.placement.store.inventories import Inventory
from moorage.placement.store.providers import Provider


def reshape(service: PlacementService, call: Call) -> Reply:
    """Replace inventories and allocations of several providers and consumers in one transaction."""
    data = call.json()
    wanted = [claim_from(service, uuid, body, call.version) for uuid, body in data["allocations"].items()]
    with refusing(
        {
            UnknownProvider: (400, "{error}"),
            ConsumerGenerationConflict: (409, "{error}"),
            ConcurrentUpdate: (409, "update conflict: {error}"),
            NotFoundError: (400, "malformed reshaper data: {error}"),
            InventoryInUse: (409, "update conflict: {error}"),
            ConflictError: (409, "Unable to allocate inventory: {error}"),
        }
    ):
        service.database.transact(lambda connection: _reshape(connection, data["inventories"], wanted))
    return no_content()


def _reshape(connection: Connection, bodies: dict[str, Any], wanted: list[Claim]) -> None:
    """First the union of old and new inventories, then the claims, then what shall be gone goes."""
    moved = []
    providers.lock_all(connection, bodies)
    for uuid in bodies:
        provider = _locked(connection, uuid, bodies[uuid]["resource_provider_generation"])
        new = {name: Inventory.from_body(body) for name, body in bodies[uuid]["inventories"].items()}
        if new:
            inventories.merge(connection, provider, new)
        moved.append((provider, new))
    if wanted:
        claims.replace(connection, wanted)
    for provider, new in moved:
        provider.generation = providers.find(connection, provider.uuid).generation
        inventories.replace(connection, provider, new)


def _locked(connection: Connection, uuid: str, generation: int) -> Provider:
    try:
        provider = providers.lock(connection, uuid)
    except ProviderNotFound as error:
        raise HttpError(
            400, f"Resource provider {uuid} in inventories not found: {error}", code=PROVIDER_NOT_FOUND
        ) from error
    if provider.generation != generation:
        raise HttpError(
            409,
            f"resource provider generation conflict for provider {uuid}: "
            f"actual: {provider.generation}, given: {generation}",
            code=CONCURRENT_UPDATE,
        )
    return provider
