"""`/resource_providers/{uuid}/aggregates`: the groups that a provider is in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.http.call import Call
from moorage.http.reply import Reply
from moorage.placement.api.refusals import refusing
from moorage.placement.api.writers import writable_trees
from moorage.placement.errors import ProviderGenerationConflict
from moorage.placement.microversions import Microversion
from moorage.placement.service import PlacementService
from moorage.placement.store import aggregates, providers
from moorage.placement.store.providers import Provider


def index(service: PlacementService, call: Call) -> Reply:
    """List the aggregates of a resource provider."""
    with service.database.snapshot() as connection:
        provider = providers.find(connection, call.params["uuid"])
        found = aggregates.of_provider(connection, provider.id)
    return _reply(call, provider, found)


def replace(service: PlacementService, call: Call) -> Reply:
    """Set the aggregates of a resource provider."""
    uuid = call.params["uuid"]
    guarded = call.version >= Microversion.AGGREGATES_WITH_GENERATION
    with service.database.read() as connection:
        providers.find(connection, uuid)
    data = call.json()
    wanted = data["aggregates"] if guarded else data
    trees = writable_trees(service, call)

    def set_all(connection: Connection) -> Provider:
        provider = providers.lock(connection, uuid, trees)
        if guarded:
            provider.expect_generation(data["resource_provider_generation"])
        aggregates.replace(connection, provider, wanted, count_generation=guarded)
        return provider

    changed = "Resource provider's generation already changed. Please update the generation and try again."
    with refusing({ProviderGenerationConflict: (409, changed)}):
        provider = service.database.transact(set_all)
    return _reply(call, provider, wanted)


def _reply(call: Call, provider: Provider, found: Sequence[str]) -> Reply:
    body: dict[str, Any] = {"aggregates": found}
    if call.version >= Microversion.AGGREGATES_WITH_GENERATION:
        body["resource_provider_generation"] = provider.generation
    return Reply(body=body, last_modified=utcnow())
