"""Usages: of a provider, and of a project."""

from __future__ import annotations

from typing import Any

from moorage.core.clock import utcnow
from moorage.http.call import Call
from moorage.http.reply import Reply
from moorage.placement.microversions import Microversion
from moorage.placement.service import PlacementService
from moorage.placement.store import allocations, providers


def of_provider(service: PlacementService, call: Call) -> Reply:
    """Show what is used of a resource provider."""
    with service.database.snapshot() as connection:
        provider = providers.find(connection, call.params["uuid"])
        used = allocations.usage_of_provider(connection, provider.id)
    body = {"resource_provider_generation": provider.generation, "usages": used}
    return Reply(body=body, last_modified=utcnow())


def of_project(service: PlacementService, call: Call) -> Reply:
    """Show what a project, or one user of it, uses in all."""
    call.checked_query()
    project_id, user_id = call.query.last["project_id"], call.query.get("user_id")
    usages: dict[str, Any]
    if call.version < Microversion.CONSUMER_TYPES:
        with service.database.read() as connection:
            usages = dict(allocations.usage_of_project(connection, project_id, user_id))
    else:
        wanted = call.query.get("consumer_type")
        with service.database.snapshot() as connection:
            by_type = allocations.usage_by_type(connection, project_id, user_id, wanted)
        usages = {
            type_name: {"consumer_count": usage.consumer_count, **usage.resources}
            for type_name, usage in by_type.items()
        }
    return Reply(body={"usages": usages}, last_modified=utcnow())


def project_named(call: Call) -> dict[str, str | None]:
    """What the policy rule compares the caller's project with."""
    return {"project_id": call.query.get("project_id")}
