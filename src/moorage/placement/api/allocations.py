"""`/allocations`: who uses what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_utils.uuidutils import is_uuid_like

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.core.microversions import Version
from moorage.http.call import Call
from moorage.http.errors import HttpError
from moorage.http.reply import Reply, no_content
from moorage.placement import claims
from moorage.placement.api.refusals import Refusals, refusing
from moorage.placement.claims import ANY, Claim
from moorage.placement.errors import (
    ConcurrentUpdate,
    ConflictError,
    ConsumerGenerationConflict,
    NotFoundError,
    UnknownProvider,
)
from moorage.placement.microversions import Microversion
from moorage.placement.service import PlacementService
from moorage.placement.store import allocations, providers


def of_consumer(service: PlacementService, call: Call) -> Reply:
    """List the allocations of a consumer."""
    uuid = call.params["consumer_uuid"]
    with service.database.snapshot() as connection:
        found = allocations.of_consumer(connection, uuid)
        consumer = allocations.consumer(connection, uuid) if found else None
    by_provider: dict[str, Any] = {}
    for allocation in found:
        entry = by_provider.setdefault(
            allocation.provider_uuid, {"resources": {}, "generation": allocation.provider_generation}
        )
        entry["resources"][allocation.class_name] = allocation.used
    body: dict[str, Any] = {"allocations": by_provider}
    if consumer is not None and call.version >= Microversion.ALLOCATIONS_BY_PROVIDER:
        body |= {"project_id": consumer.project_id, "user_id": consumer.user_id}
        if call.version >= Microversion.CONSUMER_GENERATIONS:
            body["consumer_generation"] = consumer.generation
        if call.version >= Microversion.CONSUMER_TYPES:
            body["consumer_type"] = consumer.type_name
    newest = max((allocation.created_at for allocation in found), default=utcnow())
    return Reply(body=body, last_modified=newest)


def of_provider(service: PlacementService, call: Call) -> Reply:
    """List the allocations from a resource provider."""
    with service.database.snapshot() as connection:
        provider = providers.find(connection, call.params["uuid"])
        found = allocations.of_provider(connection, provider.id)
    by_consumer: dict[str, Any] = {}
    for allocation in found:
        entry = by_consumer.setdefault(allocation.consumer_uuid, {"resources": {}})
        entry["resources"][allocation.class_name] = allocation.used
        if call.version >= Microversion.CONSUMER_GENERATIONS:
            entry["consumer_generation"] = allocation.consumer_generation
    body = {"allocations": by_consumer, "resource_provider_generation": provider.generation}
    newest = max((allocation.created_at for allocation in found), default=utcnow())
    return Reply(body=body, last_modified=newest)


def replace(service: PlacementService, call: Call) -> Reply:
    """Set the allocations of a consumer."""
    given = call.params["consumer_uuid"]
    if not is_uuid_like(given):
        raise HttpError(400, f"Malformed consumer_uuid: {given}")
    uuid = uuids.normal(given)
    data = call.json()
    claim = claim_from(service, uuid, data, call.version)
    not_found = f"Unable to allocate inventory for consumer {uuid}: "
    with refusing(_refusals(not_found)):
        service.claims.submit([claim])
    return no_content()


def manage(service: PlacementService, call: Call) -> Reply:
    """Set the allocations of several consumers at once."""
    data = call.json()
    wanted = [claim_from(service, uuid, body, call.version) for uuid, body in data.items()]
    with refusing(_refusals("Unable to allocate inventory ")):
        service.claims.submit(wanted)
    return no_content()


def delete(service: PlacementService, call: Call) -> Reply:
    """Delete the allocations of a consumer."""
    uuid = call.params["consumer_uuid"]
    if not service.database.transact(lambda connection: claims.release(connection, uuid)):
        raise HttpError(404, f"No allocations for consumer '{uuid}'")
    return no_content()


def claim_from(
    service: PlacementService, consumer_uuid: str, data: Mapping[str, Any], version: Version
) -> Claim:
    """A claim from the body that one consumer has in a request of this version."""
    entries = data["allocations"]
    if isinstance(entries, list):
        entries = {entry["resource_provider"]["uuid"]: entry for entry in entries}
    settings = service.settings
    return Claim(
        consumer_uuid=consumer_uuid,
        project_id=data.get("project_id", settings.incomplete_project_id),
        user_id=data.get("user_id", settings.incomplete_user_id),
        resources={uuid: entry["resources"] for uuid, entry in entries.items()},
        generation=data["consumer_generation"] if version >= Microversion.CONSUMER_GENERATIONS else ANY,
        type_name=data["consumer_type"] if version >= Microversion.CONSUMER_TYPES else None,
    )


def _refusals(not_found: str) -> Refusals:
    return {
        UnknownProvider: (400, "{error}"),
        NotFoundError: (400, not_found + "{error}"),
        ConsumerGenerationConflict: (409, "{error}"),
        ConcurrentUpdate: (409, "Inventory and/or allocations changed while attempting to allocate: {error}"),
        ConflictError: (409, "Unable to allocate inventory: {error}"),
    }
